# SPDX-License-Identifier: MIT
"""The Python package in a rank of a job of four on two nodes; see selftests/cluster/python."""
import array
import errno
import gc
import sys
import threading
import time

import numpy
import pyacp as acp


def raised(exception, function, *arguments):
    """Return the exception that a call must raise."""
    try:
        function(*arguments)
    except exception as e:
        return e
    raise AssertionError(f"{function.__name__} did not raise {exception.__name__}")


def starter_memory_is_seen_by_all(me, right):
    board = acp.starter().cast("Q")
    assert len(board) == acp.starter_size() // 8 and not any(board), "not zero"
    board[0] = 1000 + me
    acp.sync()
    acp.complete(acp.copy(acp.starter_ga(me) + 8, acp.starter_ga(right), 8))
    assert board[1] == 1000 + right, board[1]
    own = acp.view(acp.starter_ga(me) + 8, 8)
    assert own.cast("Q")[0] == 1000 + right and not own.readonly
    raised(LookupError, acp.view, acp.starter_ga(me), acp.starter_size() + 4096 * 1000)


def atomics_do_as_in_c(me, right):
    board, here, there = acp.starter().cast("Q"), acp.starter_ga(me), acp.starter_ga(right)
    acp.sync()
    board[16] = 0xf0
    acp.sync()
    for function, value, now in [(acp.add8, 0x0f, 0xff), (acp.xor8, 0x0f, 0xf0), (acp.or8, 1, 0xf1), (acp.and8, 1, 1),
                                 (acp.swap8, 2 ** 64 - 1, 2 ** 64 - 1), (acp.add8, 3, 2), (acp.add4, 4, 6),
                                 (acp.xor4, 1, 7), (acp.or4, 8, 15), (acp.and4, 9, 9), (acp.swap4, 5, 5)]:
        acp.complete(function(here + 136, there + 128, value))
        acp.complete(acp.copy(here + 144, there + 128, 8))
        assert board[18] == now, (function.__name__, board[18])
    acp.complete(acp.cas8(here + 136, there + 128, 4, 77))
    assert board[17] == 5
    acp.complete(acp.cas4(here + 136, there + 128, 5, 78))
    acp.complete(acp.copy(here + 144, there + 128, 8))
    assert board[18] == 78, board[18]
    raised(ValueError, acp.add4, here, there, 2 ** 32)
    raised(ValueError, acp.copy, here, there, -1)
    acp.sync()


def arrays_are_registered_without_copies(me, right):
    board, here = acp.starter().cast("Q"), acp.starter_ga(me)
    mine = numpy.full((300, 100), float(me))
    with acp.register(mine) as memory:
        assert memory.nbytes == mine.nbytes and acp.query_rank(memory.ga) == me
        board[20] = memory.ga
        acp.sync()
        acp.complete(acp.copy(here + 168, acp.starter_ga(right) + 160, 8))
        halo = numpy.zeros(100)
        with acp.register(halo) as row:
            acp.complete(acp.copy(row.ga, board[21] + 299 * 800, 800))
            assert (halo == right).all(), halo
        acp.sync()
        acp.complete(acp.copy(board[21], memory.ga_at(800), 800))       # my second row, their first
        acp.sync()
        assert (mine[0] == (me - 1) % acp.procs()).all() and (mine[1] == me).all()
        raised(IndexError, memory.ga_at, mine.nbytes + 1)
    raised((BufferError, ValueError), acp.register, mine[:, 1])
    raised((BufferError, ValueError), acp.register, b"not writable")
    with acp.register(b"read only", 0, acp.READ | acp.READ_ONLY) as text:
        acp.complete(acp.copy(here + 800, text.ga, 9))
    assert bytes(acp.starter()[800:809]) == b"read only"
    assert raised(acp.Error, acp.register, bytearray(0)).errno == errno.EINVAL


def columns_vectors_and_flags(me, right):
    board, here = acp.starter().cast("Q"), acp.starter_ga(me)
    lines, width = 50, 20
    mine, column = numpy.zeros((lines, width)), numpy.arange(float(lines)) + 1000 * me
    with acp.register(mine) as memory, acp.register(column) as source:
        board[20], board[24] = memory.ga, 0
        acp.sync()
        acp.complete(acp.copy(here + 168, acp.starter_ga(right) + 160, 8))
        theirs, flag = board[21], acp.starter_ga(right) + 192
        put = acp.copy_strided(theirs + 8 * 3, source.ga, 8, lines, 8 * width, 8)
        put = acp.copyv([(theirs + 8 * (width * i + 5), source.ga + 8 * i, 8) for i in range(lines)], put)
        acp.complete(acp.copy_signal(theirs + 8 * 7, source.ga, 8, flag, 1, add=True, order=put))
        acp.sync()
        left = numpy.arange(float(lines)) + 1000 * ((me - 1) % acp.procs())
        assert board[24] == 1, board[24]
        assert (mine[:, 3] == left).all() and (mine[:, 5] == left).all() and mine[0, 7] == left[0]
        assert not mine[:, [0, 1, 2, 4, 6]].any() and not mine[1:, 7].any()
        acp.sync()
        # A chain of mine: two lines of a column, then the rest of it, backwards.
        board[32:42] = memoryview(acp.descriptor(memory.ga + 8 * 9, 8, 2, 8 * width, here + 296) +
                                  acp.descriptor(memory.ga + 8 * (width * 49 + 9), 8, 48, -8 * width)).cast("Q")
        acp.sync()
        acp.complete(acp.copy_scatter(acp.starter_ga(right) + 256, source.ga, 8 * lines))
        acp.sync()
        assert (mine[:2, 9] == left[:2]).all() and (mine[2:, 9] == left[:1:-1]).all()
        acp.complete(acp.copy_gather(source.ga, acp.starter_ga(right) + 256, 8 * lines))
        assert (column == numpy.arange(float(lines)) + 1000 * me).all()
        raised(acp.AccessError, acp.complete, acp.copy_scatter(acp.starter_ga(right) + 256, source.ga, 8 * lines + 1))
        acp.complete(acp.reduce(source.ga, source.ga, lines - 1))
        assert (column[:-1] == 2 * (numpy.arange(float(lines - 1)) + 1000 * me)).all() and column[-1] == lines - 1 + 1000 * me
        acp.complete(acp.reduce(source.ga, source.ga + 8, 1, acp.REPLACE, acp.UINT64))
        assert column[0] == column[1]
        raised(acp.AccessError, acp.complete, acp.reduce(source.ga, source.ga, 1, acp.XOR, acp.FLOAT))
        acp.sync()          # the failing calls below may write
        handle = acp.copyv([(theirs, source.ga, 8), (theirs + 10 ** 6, source.ga, 8), (theirs, source.ga, 8)])
        raised(acp.AccessError, acp.complete, handle)
        raised(ValueError, acp.copy_strided, theirs, source.ga, 8, 2, 2 ** 63, 8)
        acp.sync()


def threads_have_contexts(me, right):
    board, here, there = acp.starter().cast("Q"), acp.starter_ga(me), acp.starter_ga(right)
    wrong = []
    acp.sync()
    board[128:200] = memoryview(bytes(72 * 8)).cast("Q")
    acp.sync()

    def work(number):
        try:
            board[160 + number] = 1000 * me + number
            with acp.Context(64) as context:
                for i in range(300):
                    acp.add8(here + 8 * (176 + number), there + 8 * 128, 1)
                put = acp.copy(there + 8 * (136 + number), here + 8 * (160 + number), 8)
                assert put >> 49 > 0, "by the queue of the process"
                acp.complete(put)
                beyond = acp.copy(there + 2 ** 30, here, 8)
                error = raised(acp.AccessError, acp.complete)
                assert error.failures == [(beyond, 4)], str(error)
                assert raised(acp.Error, acp.Context, 65).errno == errno.EINVAL
                acp.copy(there + 2 ** 30, here, 8)
                raised(acp.AccessError, context.destroy)
            context.destroy()
            assert raised(acp.Error, context.bind).errno == errno.EINVAL
            assert acp.copy(there + 8 * (136 + number), here + 8 * (160 + number), 8) >> 49 == 0
        except BaseException as e:
            wrong.append(e)
            raise
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    acp.complete()
    acp.sync()
    left = (me - 1) % acp.procs()
    assert board[128] == 1200 and list(board[136:140]) == [1000 * left + n for n in range(4)], list(board[128:140])
    kept = acp.Context()
    kept.bind()
    handle = acp.copy(here, there, 8)
    acp.Context.unbind()
    acp.complete(handle)            # of a context that does not exist
    kept.bind()                     # until the job is left


def who_waits_is_woken(me, right):
    board, here, there = acp.starter().cast("Q"), acp.starter_ga(me), acp.starter_ga(right)
    board[208], board[209], board[210] = 0, 0, 0
    flags = [(here + 8 * i, acp.GE, 1) for i in (208, 209, 210)]
    acp.sync()
    assert not acp.test(*flags[0]) and acp.test_any(flags) is None and acp.test_some(flags) == []
    assert acp.wait_until(*flags[0], timeout=0.05) is False and acp.wait_until_all(flags, timeout=0) is False
    assert acp.wait_until_any(flags, 0.01) is None and acp.wait_until_some(flags, 0.01) == []
    acp.sync()
    acp.complete(acp.add8(here + 8 * 211, there + 8 * 209, 2 ** 64 - 1))
    assert acp.wait_until_any(flags) == 1 and acp.wait_until_some(flags) == [1] and acp.test_some(flags) == [1]
    assert acp.wait_until(here + 8 * 209, acp.LT | acp.SIGNED, 0, timeout=float("inf")) and acp.test(here + 8 * 209, acp.EQ, -1)
    assert acp.test(here + 8 * 209 + 4, acp.EQ, 2 ** 32 - 1, size=4) and not acp.test_all(flags)
    acp.sync()          # the job that was left did not set the others until all have checked
    for i in (208, 210):
        acp.copy_signal(there + 8 * 212, here + 8 * 212, 8, there + 8 * i, 1, add=True)
    acp.complete()
    assert acp.wait_until_all(flags, timeout=60) and acp.test_all(flags)
    assert acp.wait_until_all([(0, acp.EQ, 0)] * 3) and acp.test_any([(0, acp.EQ, 0), flags[2]]) == 1
    assert raised(acp.Error, acp.wait_until_any, [(0, acp.EQ, 0)]).errno == errno.ENOENT
    assert raised(acp.Error, acp.wait_until, here + 4, acp.EQ, 0).errno == errno.EINVAL
    raised(ValueError, acp.wait_until, here, acp.EQ, 2 ** 64)
    raised(LookupError, acp.test, acp.starter_ga((me + 2) % 4), acp.EQ, 0)
    acp.sync()


def memory_stays_while_registered(me, right):
    data = bytearray(b"x" * 5000)
    memory = acp.register(data)
    raised(BufferError, data.extend, b"more")
    del data
    ga = memory.ga
    del memory
    gc.collect()
    bytearray(b"y" * 5000)
    acp.complete(acp.copy(acp.starter_ga(me) + 256, ga + 4999, 1))
    assert acp.starter()[256] == ord("x")
    with acp.register(array.array("i", range(10))) as numbers:
        assert acp.view(numbers.ga, 40).cast("i")[9] == 9
        kept = numbers.buffer
    kept.append(10)
    numbers.unregister()            # a second time: no effect


def failures_are_exceptions(me, right):
    here, there = acp.starter_ga(me), acp.starter_ga(right)
    acp.complete(acp.copy(there + 512, here, 8))
    beyond = acp.copy(here + 520, there + acp.starter_size() + 2 ** 20, 8)
    error = raised(acp.AccessError, acp.complete, beyond)
    assert error.handle == beyond and error.status == 4 and acp.status(beyond) == 4, error
    assert str(error) == (f"access {beyond}, copy(dst={here + 520:#x} of rank {me}, "
                          f"src={there + acp.starter_size() + 2 ** 20:#x} of rank {right}, size=8): "
                          f"reaches beyond the registered memory"), str(error)
    atomic = acp.add8(here + 520, there + acp.starter_size() + 2 ** 20, 5)
    assert raised(acp.AccessError, acp.complete, atomic).operation == (
        f"add8(dst={here + 520:#x} of rank {me}, src={there + acp.starter_size() + 2 ** 20:#x} of rank {right}, value=5)")
    assert str(raised(TypeError, acp.copy, here, "there", 8)) == "src must be an int, not str"
    assert str(raised(TypeError, acp.add8, here, there, 1.5)) == "value must be an int, not float"
    acp.complete()                  # reported once
    for _ in range(200):            # more than are kept at a time
        acp.copy(here + 520, there + acp.starter_size() + 2 ** 20, 8)
    error = raised(acp.AccessError, acp.complete)
    assert len(error.failures) == 200 and {s for _, s in error.failures} == {4}, str(error)
    failing = acp.copy(here + 520, there + 2 ** 30, 8)
    behind = acp.copy(here + 520, there + 512, 8)
    error = raised(acp.AccessError, acp.complete, behind)
    assert error.failures == [(failing, 4)] and acp.inquire(behind) and acp.status(behind) == 0, str(error)


def others_run_while_one_waits(me, right):
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.01)
    thread = threading.Thread(target=tick)
    acp.sync()
    if me == 0:
        # the others are in the barrier; a pause of the machine may take one of these
        for _ in range(30):
            time.sleep(0.1)
    else:
        thread.start()
    acp.sync()
    stop.set()
    assert me == 0 or ticks[0] > 10, ticks
    if me:
        thread.join()


def ranks_change_places(me, right):
    acp.register(bytearray(100))
    with acp.Context():
        raised(acp.Error, acp.reset, 0)         # no permutation: nothing changes
        assert acp.copy(acp.starter_ga(right), acp.starter_ga(me), 8) >> 49 > 0, "bound to none"
    silent = acp.Context()
    silent.bind()
    acp.reset(right)
    assert acp.rank() == right and not any(acp.starter())
    what_issued_nothing_is_gone(silent, acp.starter_ga(right), acp.starter_ga((right + 1) % acp.procs()))
    acp.sync()


def what_issued_nothing_is_gone(silent, here, there):
    new = acp.Context()                         # perhaps at the same address
    silent.destroy()
    raised(acp.Error, silent.bind)
    beyond = acp.copy(there + 2 ** 30, here, 8)
    assert beyond >> 49 == 0
    thread = threading.Thread(target=acp.copy, args=(there, here, 8))
    thread.start()
    thread.join()
    assert raised(acp.AccessError, acp.complete, beyond).failures == [(beyond, 4)]
    new.bind()
    new.destroy()


def messages_and_notifications_come(me, right):
    board, left = acp.starter().cast("Q"), (me - 1) % acp.procs()
    with acp.Mailbox(1000) as box:
        assert box.probe() is None and box.recv(0.001) is None
        board[200] = box.ga
        acp.sync()
        acp.complete(acp.copy(acp.starter_ga(me) + 1608, acp.starter_ga(right) + 1600, 8))
        there, own = board[201], acp.starter_ga(me) + 1616
        acp.starter()[1616:1621] = b"hello"
        acp.send(there, own, 5, tag=1000 + me)
        acp.copy_notify(acp.starter_ga(right) + 1624, own, 5, there, tag=2 ** 64 - 1, retry=True)
        assert box.recv() == (b"hello", 5, 1000 + left, left)
        assert box.recv() == (b"", 0, 2 ** 64 - 1, left)
        assert bytes(acp.starter()[1624:1629]) == b"hello"
        acp.complete()
        assert raised(acp.AccessError, acp.complete, acp.send(there, own, 2000)).status == 4      # ACPX_ERANGE
        acp.sync()


def groups_are_split(me, right):
    world, procs = acp.Group(), acp.procs()
    assert len(world) == procs and list(world) == list(range(procs)) and world.rank == me
    half = world.split(me % 2, -me)
    assert list(half) == sorted(range(me % 2, procs, 2), reverse=True) and half[half.rank] == me
    assert me in half and right not in half and half.find(right) is None
    first = half.split(acp.NO_COLOR if half.rank else 0)
    assert first is None if half.rank else list(first) == [me]
    assert list(acp.Group(range(3, 0, -2))) == [3, 1] and list(acp.Group([2, 0, 3])) == [2, 0, 3]
    assert acp.Group([right]).rank is None
    assert raised(acp.Error, acp.Group, [1, 1]).errno == errno.EINVAL
    assert raised(acp.Error, acp.Group([right]).split, 0).errno == errno.EINVAL
    raised(IndexError, world.__getitem__, procs)


def collectives_combine_and_copy(me, right):
    world, procs = acp.Group(), acp.procs()
    total = numpy.array([me, 0.5, -me], dtype=numpy.float64)
    world.allreduce(total)
    assert list(total) == [6, 2, -6], total
    largest = array.array("q", [0])
    world.reduce(array.array("q", [10 - me]), "max", 2, largest)
    assert largest[0] == (10 if me == 2 else 0), largest
    text = bytearray(b"from two" if me == 2 else 8)
    world.bcast(text, 2)
    everything = numpy.zeros((procs, 2), dtype=numpy.int32)
    world.allgather(numpy.array([me, right], dtype=numpy.int32), everything)
    assert text == b"from two" and everything.tolist() == [[r, (r + 1) % procs] for r in range(procs)], everything
    sent, got = bytes(16 * me + r for r in range(procs)), bytearray(procs)
    world.alltoall(sent, got)
    assert got == bytes(16 * r + me for r in range(procs)), got
    before = array.array("I", [7])
    world.exscan(array.array("I", [1 << me]), "or", before)
    assert before[0] == ((1 << me) - 1 if me else 7), before
    blocks = [(r * (r + 1) // 2, r + 1) for r in range(procs)]
    triangle = bytearray(10)
    world.allgatherv(bytes([me] * (me + 1)), triangle, blocks)
    assert triangle == bytes([0, 1, 1, 2, 2, 2, 3, 3, 3, 3]), triangle
    world.barrier()


def collectives_are_started_again_and_again(me, right):
    world, row = acp.Group(), array.array("d", [0, 0, 0])
    left = (me - 1) % acp.procs()
    with world.neighbours_init(row, row, [(left, (8, 8), (0, 8)), (right, (8, 8), (16, 8))]) as halo:
        assert halo.describe()
        for step in range(20):
            row[1] = 100 * me + step
            halo.start()
            halo.wait()
            assert list(row) == [100 * left + step, 100 * me + step, 100 * right + step], row
        assert halo.test() and halo.failed_rank is None
    assert raised(acp.Error, halo.start).errno == errno.EINVAL


def arrays_are_sent_in_parts(me, right):
    world, procs = acp.Group(), acp.procs()
    row = numpy.zeros(8, dtype=numpy.int64)
    with world.bcast_direct(row) as update:
        row[2] = 0 if me else 77
        update.send(offset=16, size=8)
        assert update.receive() == 8 and list(row[1:4]) == [0, 77, 0], row
        raised(acp.Error, update.send, None, 60, 8)
    with world.bcast_direct(row, root_driven=True) as update:
        if me == 0:
            row[7] = 5
            update.send(offset=56)
        assert update.receive() == 8 and row[7] == 5, row
        world.barrier()
    with world.bcast_buffered(100) as update:
        text = bytearray(b"any" * 200 if me == 0 else 600)
        update.send(text)
        update.wait()
        assert text == b"any" * 200
    with world.allgather_buffered(4 * procs) as gather:
        parts = array.array("q", [0] * procs)
        parts[me] = 3 * me
        gather.send(parts)
        assert gather.receive() == 8 and list(parts) == [3 * r for r in range(procs)], parts
    row[2 * me] = me
    with world.allgather_direct(row) as gather:
        gather.send(size=8)
        gather.wait()
        assert list(row[::2]) == list(range(procs)), row


def counters_count(me, right):
    with acp.Counter() as counter:
        acp.starter().cast("Q")[20] = counter.ga
        acp.sync()
        acp.complete(acp.copy(acp.starter_ga(me) + 168, acp.starter_ga(right) + 160, 8))
        added = acp.counter_add(acp.starter().cast("Q")[21], 2)
        acp.complete(acp.wait_word(counter.ga, 2, added))
        value = 2
        assert counter.wait(value) and not counter.wait(value + 1, timeout=0) and counter.read() == 2
        assert counter.reset() == 2 and counter.read() == 0
        acp.sync()
    assert raised(acp.Error, counter.read).errno == errno.EINVAL


def main():
    with acp.job():
        me, right = acp.rank(), (acp.rank() + 1) % acp.procs()
        assert acp.procs() == 4 and acp.node(3) == 1 and acp.peer_state(me) == 1 and acp.colors() == 1
        raised(ValueError, acp.starter_ga, 4)
        for test in (starter_memory_is_seen_by_all, atomics_do_as_in_c, arrays_are_registered_without_copies,
                     columns_vectors_and_flags, threads_have_contexts, who_waits_is_woken,
                     memory_stays_while_registered, failures_are_exceptions, others_run_while_one_waits,
                     messages_and_notifications_come, groups_are_split, collectives_combine_and_copy,
                     collectives_are_started_again_and_again, arrays_are_sent_in_parts, counters_count,
                     ranks_change_places):
            test(me, right)
            acp.sync()
            print(test.__name__, flush=True)
        view = numpy.frombuffer(acp.starter(), dtype=numpy.uint8)
        view[0] = 1
    assert not view.any(), "a view of what is gone shows something"
    for function, arguments in ((acp.rank, ()), (acp.register, (bytearray(10),)), (acp.copy, (1, 2, 3))):
        assert str(raised(acp.Error, function, *arguments)) == "not a rank any more: the job was left"
    assert sys.argv[1:] == ["kept"], sys.argv
    print("left", flush=True)


main()
