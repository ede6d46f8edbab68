import { readdirSync, readFileSync } from 'node:fs';

/** Length of the ticks in which /proc/PID/stat counts (USER_HZ, 100 on Linux), in nanoseconds. */
const TICK_NS = 10_000_000;

/**
 * Nanoseconds of CPU that the threads of a process have used, in user and in kernel mode. From the scheduler's own
 * account where the kernel keeps it, else in steps of 10 ms.
 */
export function cpuNs(pid: number): number {
  let sum = 0;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      sum += runningNs(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'));
    }
  } catch {
    sum = 0;
  }
  return sum || ticks(readFileSync(`/proc/${pid}/stat`, 'utf8')) * TICK_NS;
}

/** First field of a schedstat file: time on a CPU. */
export function runningNs(schedstat: string): number {
  return Number(schedstat.split(' ', 1)[0]);
}

/** `utime` and `stime` together; the name before them may hold anything, brackets and spaces included. */
export function ticks(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

export function loadAverage(): number {
  return Number(readFileSync('/proc/loadavg', 'utf8').split(' ', 1)[0]);
}
