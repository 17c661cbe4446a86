! SPDX-License-Identifier: MIT
!
! ring_fortran - the basic layer from Fortran: a put to the right, a get from the left, a counter
!
! Each rank puts its number into the starter memory of its right neighbour, followed by a flag
! (ACP_HANDLE_CONT), and waits for the flag from its left neighbour. Then all ranks add to a counter
! of rank 0, and each gets an array that its left neighbour has registered.
!
!    acprun -np 4 ./ring_fortran
!
! Exit status: 0 if all values were as expected, otherwise 1.
program ring_fortran
    use, intrinsic :: iso_c_binding
    use acp
    implicit none

    ! Indices of the words at the start of each rank's starter memory.
    integer, parameter :: FLAG = 1, GREETING = 2, COUNTER = 3, FORMER = 4, OUTGOING = 5, ONE = 6, &
        KEEPS = 7, HIS = 8
    integer, parameter :: ROUNDS = 100, LETTERS = 1000
    integer(c_int64_t), pointer, volatile :: board(:)
    integer(c_int64_t), target, volatile :: mine(LETTERS), yours(LETTERS)
    integer(acp_atkey_t) :: keys(2)
    integer(c_int) :: rank, procs, left, right
    integer :: i

    if (acp_init() /= 0) error stop 'ring_fortran: acp_init failed'
    rank = acp_rank()
    procs = acp_procs()
    right = mod(rank + 1, procs)
    left = mod(rank + procs - 1, procs)
    call c_f_pointer(acp_query_address(acp_query_starter_ga(rank)), board, [HIS])
    board(ONE) = 1
    board(OUTGOING) = rank
    call sync()

    call finish(acp_copy(on(right, GREETING), on(rank, OUTGOING), 8_c_size_t, ACP_HANDLE_NULL))
    call finish(acp_copy(on(right, FLAG), on(rank, ONE), 8_c_size_t, ACP_HANDLE_CONT))
    do while (board(FLAG) == 0)
    end do
    call check(board(GREETING) == left, 'the greeting')

    do i = 1, ROUNDS
        call finish(acp_add8(on(rank, FORMER), on(0, COUNTER), 1_c_int64_t, ACP_HANDLE_NULL))
    end do
    call sync()
    if (rank == 0) call check(board(COUNTER) == procs * ROUNDS, 'the counter')

    mine = [(int(rank, c_int64_t) * LETTERS + i, i = 1, LETTERS)]
    keys(1) = acp_register_memory(c_loc(mine), LETTERS * 8_c_size_t, 0)
    keys(2) = acp_register_memory(c_loc(yours), LETTERS * 8_c_size_t, 0)
    board(KEEPS) = acp_query_ga(keys(1), c_loc(mine))
    call sync()
    call finish(acp_copy(on(rank, HIS), on(left, KEEPS), 8_c_size_t, ACP_HANDLE_NULL))
    call finish(acp_copy(acp_query_ga(keys(2), c_loc(yours)), board(HIS), LETTERS * 8_c_size_t, &
        ACP_HANDLE_NULL))
    call check(all(yours == [(int(left, c_int64_t) * LETTERS + i, i = 1, LETTERS)]), 'the array')
    call sync()
    call check(acp_unregister_memory(keys(1)) == 0, 'the end of a registration')
    call check(acp_unregister_memory(keys(2)) == 0, 'the end of a registration')

    print '(a, i0, a, i0)', 'ring_fortran: all right on rank ', rank, ' of ', procs
    if (acp_finalize() /= 0) error stop 'ring_fortran: acp_finalize failed'

contains

    ! Return the global address of such a word of a rank.
    integer(acp_ga_t) function on(peer, what)
        integer(c_int), intent(in) :: peer
        integer, intent(in) :: what

        on = acp_query_starter_ga(peer) + 8 * (what - 1)
    end function

    subroutine check(right_so, what)
        logical, intent(in) :: right_so
        character(*), intent(in) :: what

        if (.not. right_so) call acp_abort('ring_fortran: wrong: ' // what)
    end subroutine

    ! Wait for an access. A failure ends the job, and the reason is printed.
    subroutine finish(handle)
        integer(acp_handle_t), intent(in) :: handle

        if (handle == ACP_HANDLE_NULL) call acp_abort('ring_fortran: not accepted')
        call acp_complete(handle)
    end subroutine

    subroutine sync()
        if (acp_sync() /= 0) call acp_abort('ring_fortran: acp_sync failed: a rank is gone')
    end subroutine
end program ring_fortran
