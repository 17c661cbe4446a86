# SPDX-License-Identifier: MIT
# What zsh would offer: selftests/unit/completion has an interactive zsh read this.
#
# $ACP_FUNCTIONS: directory of the completions, named as zsh looks for them. $ACP_QUESTIONS: file
# of command lines. $ACP_ANSWERS: file that is written, a line per match: number of the command
# line, a tab, the match.

fpath=($ACP_FUNCTIONS $fpath)
autoload -U compinit
compinit -u -D

# Takes the place of the builtin that each completion hands its matches to; a call with -O, -A or
# -D only asks which of them would match.
compadd()
{
	local -a matches
	local argument

	for argument; do
		case $argument in
		-|--) break ;;
		-[OAD]*|-[a-z12]#[OAD]) builtin compadd "$@"; return ;;
		esac
	done
	builtin compadd -A matches "$@"
	(( ! $#matches )) || print -rl -- $number$'\t'${^matches} >>$ACP_ANSWERS
	builtin compadd "$@"
}
setopt extended_glob

zle -C offer list-choices _main_complete
# In place of the next prompt.
zle-line-init()
{
	local -a questions=("${(f)$(<$ACP_QUESTIONS)}")
	local number

	for number in {1..$#questions}; do
		# A line ends with a dot, lest a blank there gets lost.
		BUFFER=${questions[number]%.}
		CURSOR=$#BUFFER
		zle offer
	done
	BUFFER='exit 0'
	zle accept-line
}
zle -N zle-line-init
