import { Command } from 'commander';
import { UsageError } from '../../xds-server/cli/usage-error.js';
import { addOptions, runCompare } from './command.js';

const program = addOptions(
  new Command('compare').description('Compare policies in simulated fleets, in virtual time.'),
);

try {
  await program.action(runCompare).parseAsync();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
