import { Command, Help } from 'commander';
import { registerSimulate } from '../../simulator/experiments/command.js';
import { registerFit } from '../profiles/fit/command.js';
import { registerBootstrap } from './commands/bootstrap.js';
import { registerChanges } from './commands/changes.js';
import { registerDecide } from './commands/decide.js';
import { registerExplain } from './commands/explain.js';
import { registerHeadroom } from './commands/headroom.js';
import { registerOperations } from './commands/operations.js';
import { registerRecord } from './commands/record.js';
import { registerSchema } from './commands/schema.js';
import { registerServe } from './commands/serve.js';
import { registerSolve } from './commands/solve.js';
import { registerStatus } from './commands/status.js';
import { registerValidate } from './commands/validate.js';
import { packageVersion } from './package-files.js';

const EXAMPLES = `
Examples:
  wardrop validate -c fleet.yaml                        check a configuration
  wardrop serve -c fleet.yaml                           run the control server
  wardrop bootstrap -c fleet.yaml --frontend west >west.yaml
  envoy -c west.yaml                                    run an Envoy of frontend west
  wardrop status -c fleet.yaml
  wardrop explain -c fleet.yaml --frontend west --engine b
  wardrop explain -c fleet.yaml --frontend west --engine b --plan 5f0e9c3a1b2d4c6e
  wardrop decide -c fleet.yaml --frontend west --header 'x-session-id: s1' --body chat.json
  wardrop changes -c fleet.yaml
  wardrop solve -c fleet.yaml --without engine=b --demand west=+30%
  wardrop headroom -c fleet.yaml
  wardrop drain -c fleet.yaml b --for 2h
  wardrop undrain -c fleet.yaml b
  wardrop penalty release -c fleet.yaml b
  wardrop record -c fleet.yaml --out fleet.jsonl.gz --for 10m
  wardrop replay fleet.jsonl.gz
  wardrop simulate --recording fleet.jsonl.gz           what other policies would have done

Exit status: 0 done, 1 something failed, 2 the command line or the configuration is wrong,
3 status has alarms to tell.`;

/** The command line; errors are thrown, not printed. */
export function buildProgram(): Command {
  const program = new Command('wardrop')
    .description('Inference load balancer: globally optimised weights, applied per request inside Envoy')
    .version(packageVersion())
    .addHelpText('after', EXAMPLES)
    .configureHelp({ commandUsage })
    .exitOverride();
  registerServe(program);
  registerValidate(program);
  registerBootstrap(program);
  registerStatus(program);
  registerExplain(program);
  registerDecide(program);
  registerChanges(program);
  registerSolve(program);
  registerHeadroom(program);
  registerOperations(program);
  registerRecord(program);
  registerFit(program);
  registerSimulate(program);
  registerSchema(program);
  // Commands do not inherit this when they are made before it is set, so it is set for all.
  for (const command of program.commands) command.exitOverride();
  return program;
}

/** Names the options that a command cannot do without, which only look optional in a list of options. */
function commandUsage(command: Command): string {
  const needed = command.options
    .filter(({ mandatory, defaultValue }) => mandatory && defaultValue === undefined)
    .map(({ short, long, flags }) => `${short ?? long} ${flags.slice(flags.indexOf('<'))}`);
  return new Help().commandUsage(command).replace('[options]', [...needed, '[options]'].join(' '));
}
