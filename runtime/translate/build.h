/* SPDX-License-Identifier: MIT */
/* The parts of the builder; see build.c. */
#ifndef RUNTIME_TRANSLATE_BUILD_H
#define RUNTIME_TRANSLATE_BUILD_H

#include "runtime/translate/emit.h"

/* How an entry is made ready to be arrived at. */
enum arrival { ARRIVE_DIRECT, ARRIVE_JUMP, ARRIVE_RETURN };

/*
 * Builds code for @pc and returns its entry; or, if there is code but no landing or pad as asked
 * for, adds that. With the translator locked. 0: @fault says why there can be none.
 */
struct build_fault {
	int signo, code;
	uint64_t address;
};

uint32_t build(struct cache *cache, uint64_t pc, enum arrival arrival, struct build_fault *fault);

/* Who arrives like that finds the entry without asking. */
void fill_tables(struct cache *cache, enum arrival arrival, uint32_t id);

/* Builds code that executes the one instruction at @pc and leaves. Returns where it starts. */
uint32_t build_step(struct cache *cache, uint64_t pc, struct build_fault *fault);

/*
 * Emits @fragment again into @buffer of FRAGMENT_BYTES and returns the program's state at @address
 * in it.
 */
struct state rehearse(struct cache *cache, const struct fragment *fragment, uint64_t address,
		      uint8_t *buffer);

/* As translate_recover(), of a thread that a filter has let through (recover.c), which remembers
 * the last places; and that they are others now. */
void recover_filtered(struct thread *thread, struct regs *regs, struct counts *counts);
void recover_forget(struct thread *thread);

/* From here on code is that of @pc. Returns the entry. */
struct entry *add_entry(struct builder *b, uint64_t pc, uint32_t body, unsigned int level);

/* ---- step.c ---- */

/* What an instruction means for the fragment: whether it ends, with a jump or as it is. */
enum next { GO_ON, STOP, STOPPED };

/* The instruction at b->pc, which moves on. */
enum next emit_insn(struct builder *b);

/* ---- targets.c ---- */

/* Makes entries of where the fragment's own branches lead within it. */
void targets_add(struct builder *b);

/* How far who goes to @pc may have gone. False: there is no code there yet. */
bool targets_level(const struct builder *b, uint64_t pc, unsigned int *level);

/* Whether there would be others if the fragment were made with them in mind. */
bool targets_lack(const struct builder *b);

/* ---- fetch.c ---- */

/* Decodes the instruction at b->pc. Returns 0, or how that fails, with @fault filled in. */
bool fetch(struct builder *b, struct build_fault *fault);

/* The same of code at @pc, of which @size bytes are there, without taking it. */
bool look_at(struct insn *insn, uint64_t pc, size_t size);

/* ---- check.c ---- */

/* How much of the code at b->pc a fragment that checks itself may be made from: b->limit
 * instructions, fragment->checked bytes. False if there is none. */
bool plan_check(struct builder *b, struct build_fault *fault);

/* Leaves by EXIT_STALE if that code is not what it was. */
void emit_check(struct builder *b);

/* Whether the fragment may depend on code of @page; whether it does. */
bool take_page(struct builder *b, uint64_t page);
bool has_page(const struct builder *b, uint64_t page);

/* ---- exits ---- */

/* The rel32 of an exit to @target; the caller has called align_patch(). */
void emit_exit(struct builder *b, uint64_t target, enum exit_kind kind);

/* jmp to it */
void emit_exit_jump(struct builder *b, uint64_t target, enum exit_kind kind);

/* ---- operand.c ---- */

/* Of the registers that need no REX bit, one that the instruction does not use. */
enum reg operand_register(const struct insn *insn);

void operand_put(struct builder *b, const uint8_t *bytes, unsigned int n);

/* Makes @bit of REX, VEX, XOP or EVEX, REX_B or REX_X, say rax ... rdi, or that there is no index;
 * @copy is where the instruction begins. */
void operand_clear_bit(const struct insn *insn, uint8_t *copy, uint8_t bit);

/* Copies an instruction with a RIP-relative operand, so that it has the same address. */
void emit_rip_relative(struct builder *b);

/* mov OPERAND, %rcx, with the r/m operand of an indirect branch. */
void emit_operand_to_rcx(struct builder *b);

/* ---- own_fs.c ---- */

/* Where FS is the runtime's: whether it keeps an instruction from being translated; */
bool own_fs_forbids(const struct insn *insn);

/* or whether its operand goes by it, */
bool own_fs_changes(const struct insn *insn);

/* and then copies it so that it has the same address. */
void emit_own_fs(struct builder *b);

/* ---- branch.c ---- */

void emit_jcc(struct builder *b);
void emit_loop(struct builder *b);
void emit_xbegin(struct builder *b);
void emit_jump_indirect(struct builder *b);
void emit_return(struct builder *b);

/* Ends with the return pad: what follows is executed after the return. */
void emit_call(struct builder *b);
void emit_call_indirect(struct builder *b);

/* Before each instruction: sees to it that pads reach a way to a miss. */
void emit_miss_in_reach(struct builder *b);

/* Behind the last one: what belongs to calls. */
void emit_out_of_line(struct builder *b);

/* Where indirect jumps and calls to @pc, or returns to it, arrive. The offset of where they do. */
uint32_t emit_landing(struct builder *b, uint64_t pc);
uint32_t emit_pad(struct builder *b, uint64_t pc);

/* Writes the ways out at the start of a half of the cache. */
void emit_ways_out(struct builder *b);

#endif
