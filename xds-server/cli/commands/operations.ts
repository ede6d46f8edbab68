import os from 'node:os';
import type { Command } from 'commander';
import type { OperatorAction, Orders } from '../../fleet/operations.js';
import { durationWithin } from '../duration.js';
import { ask, type SourceOptions, withSource } from '../source.js';

interface ActionOptions extends SourceOptions {
  readonly for?: number;
  readonly over?: number;
}

const orderTime = durationWithin('1s', '30d');

export function registerOperations(program: Command): void {
  withSource(
    program
      .command('drain')
      .summary('take an engine or a replica out of service')
      .description(
        'Take an engine (by id) or one replica (by address) out of service: an engine step by step, a replica at ' +
          'once. Requests under way are not touched. When nobody else can serve a model, a drained engine still does.',
      )
      .argument('<target>', 'engine id or replica address')
      .option('--for <time>', 'how long it lasts, such as 30s, 10m, 4h or 1d (default: 4h)', orderTime)
      .option(
        '--over <time>',
        'time in which an engine loses its capacity (default: 30s)',
        durationWithin('0s', '1h'),
      ),
  ).action((target: string, options: ActionOptions) => act('drain', target, options));
  withSource(
    program
      .command('undrain')
      .summary('put an engine or a replica back into service')
      .description('Put an engine or a replica that was drained back into service.')
      .argument('<target>', 'engine id or replica address, as it was drained'),
  ).action((target: string, options: ActionOptions) => act('undrain', target, options));

  const penalty = program
    .command('penalty')
    .summary('hold or release the penalty of a slow engine')
    .description(
      'An engine that answers much slower than its profile says, without failing, gets less. These orders keep that as it is, or end it.',
    )
    .exitOverride();
  withSource(
    penalty
      .command('hold')
      .description('Keep the penalty of an engine as it is.')
      .exitOverride()
      .argument('<engine>', 'engine id')
      .option('--for <time>', 'how long it lasts (default: 1h)', orderTime),
  ).action((target: string, options: ActionOptions) => act('hold-penalty', target, options));
  withSource(
    penalty
      .command('release')
      .description('End the penalty of an engine and allow no other.')
      .exitOverride()
      .argument('<engine>', 'engine id')
      .option('--for <time>', 'how long it lasts (default: 10m)', orderTime),
  ).action((target: string, options: ActionOptions) => act('release-penalty', target, options));
}

async function act(action: OperatorAction['action'], target: string, options: ActionOptions): Promise<void> {
  const body = {
    action,
    target,
    by: `${userName()}@${os.hostname()}`.replace(/[^\x20-\x7e]/g, '?').slice(0, 100),
    ...(options.for === undefined ? {} : { forSeconds: options.for }),
    ...(options.over === undefined ? {} : { overSeconds: options.over }),
  };
  const answer = await ask(options, '/v1/operations', { method: 'POST', body });
  console.log(outcome(action, target, JSON.parse(answer) as Orders));
}

/** A container may run as a user that has only a number. */
function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return `user ${process.getuid?.()}`;
  }
}

/** What is so from now on, and how to end it. */
function outcome(action: OperatorAction['action'], target: string, { drains, orders }: Orders): string {
  if (action === 'undrain') return `${target} is back in service`;
  if (action === 'drain') {
    const drain = drains.find(({ engineId, address }) => (address ?? engineId) === target);
    return `${target} is drained${until(drain)}; wardrop undrain ends that`;
  }
  const lasts = until(orders.find(({ engineId }) => engineId === target));
  return action === 'hold-penalty'
    ? `the penalty of ${target} stays as it is${lasts}; wardrop penalty release ends it`
    : `${target} gets no penalty${lasts}`;
}

function until(order: { readonly untilMs: number } | undefined): string {
  return order === undefined ? '' : ` until ${new Date(order.untilMs).toISOString()}`;
}
