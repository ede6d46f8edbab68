import { CommanderError } from 'commander';
import { ConfigError } from '../config/problem.js';
import { WardropError } from '../errors.js';
import { ExitStatus } from './exit-status.js';
import { buildProgram } from './program.js';
import { UsageError } from './usage-error.js';

/**
 * Runs a command line; exit status 0: done, 1: something failed, 2: the command line or configuration is wrong, 3:
 * `status` has alarms to tell.
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return report(error);
  }
}

/** Says what went wrong; the result is the exit status. */
export function report(error: unknown): number {
  // Commander has already printed what is wrong, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ExitStatus) return error.status;
  if (error instanceof ConfigError) {
    console.error(error.message);
    console.error(
      `${error.problems.length} problem${error.problems.length === 1 ? '' : 's'} (${error.code})`,
    );
    return 2;
  }
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}`);
    return error.exitCode;
  }
  if (error instanceof WardropError) {
    console.error(`error: ${error.message} (${error.code})`);
    return error.code === 'WARDROP_QUERY_INVALID' ? 2 : 1;
  }
  console.error(error);
  return 1;
}
