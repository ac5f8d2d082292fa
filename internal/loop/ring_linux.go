package loop

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring makes many system calls in one: an io_uring that is used as nothing but a list
// of calls. Nothing is ever under way in it. Its operations are calls that do not
// block, and all are done when [ring.run] returns. Only the loop's goroutine uses it.
//
// The layout of what is shared with the system is that of linux/io_uring.h.
type ring struct {
	fd      int
	shared  []byte // both queues, which one mapping holds
	entries []byte // the submission entries
	sqes    []sqe  // on entries
	sqTail  *uint32
	sqMask  uint32
	sqIndex []uint32
	cqHead  *uint32
	cqTail  *uint32
	cqMask  uint32
	cqes    []cqe
	queued  uint32 // added and not submitted

	// probe is what try sends and where that arrives. The system has its address, and what is on
	// a stack moves when the stack grows.
	probe [2]byte
}

// sqe is struct io_uring_sqe, as far as send and receive use it.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	length        uint32
	msgFlags      uint32
	userData      uint64
	_             [24]byte
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
		_                                                           uint64
	}
	cq struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
		_                                                           uint64
	}
}

const (
	opSend = 26 // IORING_OP_SEND, Linux 5.6
	opRecv = 27 // IORING_OP_RECV, Linux 5.6

	setupSubmitAll   = 1 << 7 // IORING_SETUP_SUBMIT_ALL, Linux 5.18: one that fails does not keep back the rest
	enterGetEvents   = 1 << 0 // IORING_ENTER_GETEVENTS
	featSingleMmap   = 1 << 0 // IORING_FEAT_SINGLE_MMAP
	featSubmitStable = 1 << 2 // IORING_FEAT_SUBMIT_STABLE
	offSQRing        = 0
	offSQEs          = 0x10000000 // IORING_OFF_SQES
)

// notRun is the result of an operation that has not been carried out.
const notRun = -int32(unix.ENOSYS)

// newRing makes a ring for up to size operations at a time, a power of two. It fails where the
// system has no io_uring, or does not let this process have one, as in many containers.
func newRing(size uint32) (*ring, error) {
	p := ringParams{flags: setupSubmitAll}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(size), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r := &ring{fd: int(fd)}
	if want := uint32(featSingleMmap | featSubmitStable); p.features&want != want {
		r.close()
		return nil, errors.New("the io_uring of this Linux is too old")
	}
	if err := r.mapShared(&p); err != nil {
		r.close()
		return nil, err
	}
	if err := r.try(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ring) mapShared(p *ringParams) (err error) {
	length := max(int(p.sq.array+p.sqEntries*4), int(p.cq.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(cqe{})))
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.shared, err = unix.Mmap(r.fd, offSQRing, length, prot, flags); err != nil {
		return fmt.Errorf("mapping the queues of an io_uring: %w", err)
	}
	if r.entries, err = unix.Mmap(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})), prot, flags); err != nil {
		return fmt.Errorf("mapping the entries of an io_uring: %w", err)
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.shared[offset])) }
	r.sqTail, r.sqMask = at(p.sq.tail), *at(p.sq.ringMask)
	r.cqHead, r.cqTail, r.cqMask = at(p.cq.head), at(p.cq.tail), *at(p.cq.ringMask)
	r.sqIndex = unsafe.Slice(at(p.sq.array), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.shared[p.cq.cqes])), p.cqEntries)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(unsafe.SliceData(r.entries))), p.sqEntries)
	return nil
}

// try sends a byte through a pair of sockets: the system may have io_uring and not these
// operations, or forbid them.
func (r *ring) try() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a pair of sockets: %w", err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	r.probe = [2]byte{'x'}
	var results [2]int32
	r.send(pair[0], r.probe[:1], 0)
	r.recv(pair[1], r.probe[1:], 1)
	if r.run(results[:]); results != [2]int32{1, 1} || r.probe[1] != r.probe[0] {
		return fmt.Errorf("io_uring does not send and receive: %d, %d", results[0], results[1])
	}
	return nil
}

// bytes is what the ring takes.
func (r *ring) bytes() int64 { return int64(len(r.shared) + len(r.entries)) }

func (r *ring) close() {
	if r.shared != nil {
		_ = unix.Munmap(r.shared)
	}
	if r.entries != nil {
		_ = unix.Munmap(r.entries)
	}
	unix.Close(r.fd)
}

// send adds a send of p to what is to be run, and recv a receive into p; neither blocks. What p
// points to must stay until it is run. tag is where the result goes.
func (r *ring) send(fd int, p []byte, tag int) {
	r.add(opSend, fd, p, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, tag)
}

func (r *ring) recv(fd int, p []byte, tag int) { r.add(opRecv, fd, p, unix.MSG_DONTWAIT, tag) }

func (r *ring) add(op uint8, fd int, p []byte, flags uint32, tag int) {
	tail := *r.sqTail + r.queued
	i := tail & r.sqMask
	r.sqes[i] = sqe{
		opcode: op, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), length: uint32(len(p)),
		msgFlags: flags, userData: uint64(tag),
	}
	r.sqIndex[i] = i
	r.queued++
}

// run carries out what was added. results gets for each tag what the call returned: a
// number of bytes, a negative errno, or notRun if it was not made.
func (r *ring) run(results []int32) {
	for i := range results {
		results[i] = notRun
	}
	left := r.queued
	atomic.StoreUint32(r.sqTail, *r.sqTail+r.queued)
	r.queued = 0
	submit, flags := left, uintptr(0)
	for left > 0 {
		n, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(submit), uintptr(left), flags, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			// What the system has not taken is never to run: it stands for calls that the loop makes itself.
			atomic.StoreUint32(r.sqTail, *r.sqTail-submit)
			left -= submit
			submit = 0
			if left == 0 {
				return
			}
		default:
			submit -= min(uint32(n), submit)
		}
		left -= r.reap(results)
		// All should be done by now. If not, it is waited for.
		flags = enterGetEvents
	}
}

// reap takes results off the completion queue.
func (r *ring) reap(results []int32) (n uint32) {
	head, tail := *r.cqHead, atomic.LoadUint32(r.cqTail)
	for ; head != tail; head++ {
		c := &r.cqes[head&r.cqMask]
		results[c.userData] = c.res
		n++
	}
	atomic.StoreUint32(r.cqHead, head)
	return n
}
