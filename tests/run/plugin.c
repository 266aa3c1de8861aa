// SPDX-License-Identifier: MIT
/* Loaded, called and unloaded again by change.c, as several libraries that differ in VALUE. */
int plugin(int x);
int plugin(int x)
{
	int sum = VALUE;

	for (int i = 0; i < x; i++)
		sum += i ^ VALUE;
	return sum;
}
