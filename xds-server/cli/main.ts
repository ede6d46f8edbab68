#!/usr/bin/env node
import { WardropError } from '../errors.js';
import { messageOf } from '../message-of.js';
import { report, run } from './run.js';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as `head` that has seen enough is no fault.
  if (error.code === 'EPIPE') process.exit();
  process.exit(
    report(
      new WardropError('WARDROP_OUTPUT_FAILED', `standard output: ${messageOf(error)}`, { cause: error }),
    ),
  );
});
process.exitCode = await run(process.argv.slice(2));
