import { Command, CommanderError } from 'commander';
import { UsageError } from '../../xds-server/cli/usage-error.js';
import { addOptions, runSimulate } from './command.js';

const program = addOptions(
  new Command('compare').description('Compare policies in simulated fleets, in virtual time.'),
);

try {
  await program.exitOverride().action(runSimulate).parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong, or what was asked for.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof UsageError) {
    console.error(error.message);
    process.exitCode = error.exitCode;
  } else {
    throw error;
  }
}
