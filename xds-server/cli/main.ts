#!/usr/bin/env node
import { CommanderError } from 'commander';
import { ConfigError } from '../config/problem.js';
import { WardropError } from '../errors.js';
import { buildProgram } from './program.js';
import { UsageError } from './usage-error.js';

/** Exit status 0: done; 1: something failed; 2: the command line or the configuration is wrong. */
async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  // Commander has already printed what is wrong, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
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
    return 1;
  }
  console.error(error);
  return 1;
}

await main();
