! SPDX-License-Identifier: MIT
!
! The basic layer of ACP for Fortran 2003: names, arguments and results are those of acp.h, and the
! manual pages of the C functions apply. Compile it with a program, and link the program to libacp:
!
!    gfortran -o program /usr/include/acp.f90 program.f90 $(pkg-config --libs acp)
!
! Fortran has no unsigned integers: global addresses, keys and operands of atomics are signed, with
! the same bits. A memory address is a type(c_ptr), the c_loc() of a variable with the attribute
! target; variables that other ranks write should also have the attribute volatile.
module acp
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer, parameter, public :: acp_ga_t = c_int64_t
    integer, parameter, public :: acp_atkey_t = c_int64_t
    integer, parameter, public :: acp_handle_t = c_int64_t

    integer(acp_ga_t), parameter, public :: ACP_GA_NULL = 0
    integer(acp_atkey_t), parameter, public :: ACP_ATKEY_NULL = 0
    integer(acp_handle_t), parameter, public :: ACP_HANDLE_NULL = 0
    integer(acp_handle_t), parameter, public :: ACP_HANDLE_ALL = -1
    integer(acp_handle_t), parameter, public :: ACP_HANDLE_CONT = -2

    ! For acpx_set_error_mode().
    integer(c_int), parameter, public :: ACPX_ERRORS_ABORT = 0, ACPX_ERRORS_RETURN = 1

    public :: acp_init, acp_abort, acpx_strerror
    public :: acp_finalize, acp_reset, acp_sync, acp_rank, acp_procs
    public :: acp_query_starter_ga, acp_register_memory, acp_unregister_memory, acp_query_ga
    public :: acp_query_address, acp_query_rank, acp_query_color, acp_colors
    public :: acp_copy, acp_complete, acp_inquire, acp_malloc, acp_free
    public :: acp_cas4, acp_cas8, acp_swap4, acp_swap8, acp_add4, acp_add8
    public :: acp_xor4, acp_xor8, acp_or4, acp_or8, acp_and4, acp_and8
    public :: acpx_status, acpx_set_error_mode, acpx_starter_size, acpx_heap_size

    ! ---- Different from C: program arguments, strings ----

    interface
        integer(c_int) function init_c(argc, argv) bind(c, name='acp_init')
            import
            type(c_ptr), value :: argc, argv
        end function

        subroutine abort_c(text) bind(c, name='acp_abort')
            import
            character(kind=c_char), intent(in) :: text(*)
        end subroutine

        type(c_ptr) function strerror_c(status) bind(c, name='acpx_strerror')
            import
            integer(c_int), value :: status
        end function

        integer(c_size_t) function strlen_c(text) bind(c, name='strlen')
            import
            type(c_ptr), value :: text
        end function
    end interface

    ! ---- Infrastructure, global memory ----

    interface
        integer(c_int) function acp_finalize() bind(c)
            import
        end function

        integer(c_int) function acp_reset(rank) bind(c)
            import
            integer(c_int), value :: rank
        end function

        integer(c_int) function acp_sync() bind(c)
            import
        end function

        integer(c_int) function acp_rank() bind(c)
            import
        end function

        integer(c_int) function acp_procs() bind(c)
            import
        end function

        integer(acp_ga_t) function acp_query_starter_ga(rank) bind(c)
            import
            integer(c_int), value :: rank
        end function

        integer(acp_atkey_t) function acp_register_memory(addr, size, color) bind(c)
            import
            type(c_ptr), value :: addr
            integer(c_size_t), value :: size
            integer(c_int), value :: color
        end function

        integer(c_int) function acp_unregister_memory(atkey) bind(c)
            import
            integer(acp_atkey_t), value :: atkey
        end function

        integer(acp_ga_t) function acp_query_ga(atkey, addr) bind(c)
            import
            integer(acp_atkey_t), value :: atkey
            type(c_ptr), value :: addr
        end function

        type(c_ptr) function acp_query_address(ga) bind(c)
            import
            integer(acp_ga_t), value :: ga
        end function

        integer(c_int) function acp_query_rank(ga) bind(c)
            import
            integer(acp_ga_t), value :: ga
        end function

        integer(c_int) function acp_query_color(ga) bind(c)
            import
            integer(acp_ga_t), value :: ga
        end function

        integer(c_int) function acp_colors() bind(c)
            import
        end function

        integer(c_size_t) function acpx_starter_size() bind(c)
            import
        end function

        integer(c_size_t) function acpx_heap_size() bind(c)
            import
        end function

        integer(acp_ga_t) function acp_malloc(size, rank) bind(c)
            import
            integer(c_size_t), value :: size
            integer(c_int), value :: rank
        end function

        subroutine acp_free(ga) bind(c)
            import
            integer(acp_ga_t), value :: ga
        end subroutine
    end interface

    ! ---- Global memory access ----

    interface
        integer(acp_handle_t) function acp_copy(dst, src, size, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_size_t), value :: size
            integer(acp_handle_t), value :: order
        end function

        subroutine acp_complete(handle) bind(c)
            import
            integer(acp_handle_t), value :: handle
        end subroutine

        integer(c_int) function acp_inquire(handle) bind(c)
            import
            integer(acp_handle_t), value :: handle
        end function

        integer(c_int) function acpx_status(handle) bind(c)
            import
            integer(acp_handle_t), value :: handle
        end function

        integer(c_int) function acpx_set_error_mode(mode) bind(c)
            import
            integer(c_int), value :: mode
        end function

        integer(acp_handle_t) function acp_cas4(dst, src, oldval, newval, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: oldval, newval
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_cas8(dst, src, oldval, newval, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: oldval, newval
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_swap4(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_swap8(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_add4(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_add8(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_xor4(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_xor8(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_or4(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_or8(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_and4(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int32_t), value :: value
            integer(acp_handle_t), value :: order
        end function

        integer(acp_handle_t) function acp_and8(dst, src, value, order) bind(c)
            import
            integer(acp_ga_t), value :: dst, src
            integer(c_int64_t), value :: value
            integer(acp_handle_t), value :: order
        end function
    end interface

contains

    ! Without program arguments: ACP_* variables have the same effect.
    integer(c_int) function acp_init()
        acp_init = init_c(c_null_ptr, c_null_ptr)
    end function

    subroutine acp_abort(text)
        character(*), intent(in) :: text

        call abort_c(text // c_null_char)
    end subroutine

    function acpx_strerror(status) result(text)
        integer(c_int), intent(in) :: status
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: there
        integer :: i

        there = strerror_c(status)
        call c_f_pointer(there, letters, [strlen_c(there)])
        allocate(character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function
end module acp
