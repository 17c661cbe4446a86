// SPDX-License-Identifier: MIT
/*
 * acp.h can be included first, in C99 and in C++11, and its constants are those that programs
 * written for ACP 3.0.0 expect. Built as both.
 */
#include "acp.h"

#include <stdio.h>

int main(void)
{
	acp_handle_t all = (acp_handle_t)ACP_HANDLE_ALL;
	acp_handle_t cont = (acp_handle_t)ACP_HANDLE_CONT;
	int good = all == -1 && cont == -2 && ACP_HANDLE_NULL == 0 && ACP_GA_NULL == 0 &&
		   ACP_ATKEY_NULL == 0 && sizeof(acp_ga_t) == 8 && sizeof(acp_atkey_t) == 8;

	printf("KTAP version 1\n1..1\n%s 1 - header__alone\n", good ? "ok" : "not ok");
	return !good;
}
