// SPDX-License-Identifier: MIT
#include "kept_case.h"

#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event_case.h"

__attribute__((noipa)) void place(void)
{
	__asm__ volatile("nop");
}

__attribute__((noipa)) void call(int times)
{
	for (int i = 0; i < times; i++)
		raw(SYS_getpriority, 0, 0);
}

struct perf_event_attr place_breakpoint(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(struct perf_event_attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = (uint64_t)place,
		.bp_len = sizeof(long),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

uint64_t tracepoint_number(const char *name)
{
	char path[128];
	unsigned long number;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &number) != 1) {
		say("skip: no tracepoints can be had\n");
		_exit(0);
	}
	fclose(file);
	return number;
}

struct perf_event_attr call_tracepoint(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(struct perf_event_attr),
		.config = tracepoint_number("syscalls/sys_enter_getpriority"),
	};
}

void settle(void)
{
	usleep(1000);
}

int load_program(int result)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = result},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_TRACEPOINT,
		.insns = (uint64_t)code,
		.insn_cnt = 2,
		.license = (uint64_t) "GPL",
	};
	const int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));

	if (fd < 0) {
		say("skip: no BPF programs can be loaded\n");
		_exit(0);
	}
	return fd;
}
