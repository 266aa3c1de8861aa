// SPDX-License-Identifier: MIT
/* Loaded, called and unloaded again by change.c, as several libraries that differ in VALUE. */
int plugin(int x);
extern volatile unsigned short plugin_semaphore;
/* As systemtap's probes have it: not in what is zeroed, which is no part of the file. */
volatile unsigned short plugin_semaphore __attribute__((section(".data.probes"))) = 0;
int plugin(int x)
{
	int sum = VALUE;

	for (int i = 0; i < x; i++)
		sum += i ^ VALUE;
	return sum;
}
