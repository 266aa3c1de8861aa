// SPDX-License-Identifier: MIT

// client TURNS: a group of instructions and branches around a region, by the bare system calls.
// Prints how much more twice the turns are.
package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// The first version of the attr, of 64 bytes.
type attr struct {
	kind, size                                    uint32
	config, period, sampleType, readFormat, flags uint64
	wakeupEvents, bpType                          uint32
	config1                                       uint64
}

const (
	disabled      = 1
	excludeKernel = 1 << 5
	excludeHv     = 1 << 6
	formatGroup   = 1 << 3

	enable  = 0x2400
	disable = 0x2401
	reset   = 0x2403
)

// In region_amd64.s, as Go has no other assembly.
func region(turns uint64)

func open(config uint64, group int) int {
	a := attr{config: config, readFormat: formatGroup, flags: excludeKernel | excludeHv}
	a.size = uint32(unsafe.Sizeof(a))
	if group < 0 {
		a.flags |= disabled
	}
	fd, _, err := syscall.RawSyscall6(298, uintptr(unsafe.Pointer(&a)), 0, ^uintptr(0),
		uintptr(group), 0, 0)
	if err != 0 {
		println("perf_event_open:", err.Error())
		os.Exit(1)
	}
	return int(fd)
}

func control(fd int, request uintptr) {
	syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), request, 1)
}

func measure(group int, turns uint64) (values [3]uint64) {
	control(group, reset)
	control(group, enable)
	region(turns)
	control(group, disable)
	syscall.RawSyscall(syscall.SYS_READ, uintptr(group), uintptr(unsafe.Pointer(&values)), 24)
	return
}

func main() {
	runtime.LockOSThread()
	turns, _ := strconv.ParseUint(os.Args[1], 0, 64)
	group := open(1, -1)
	open(4, group)
	once := measure(group, turns)
	twice := measure(group, 2*turns)
	os.Stdout.WriteString(strconv.FormatUint(twice[1]-once[1], 10) + " " +
		strconv.FormatUint(twice[2]-once[2], 10) + "\n")
}
