import { type Command, Option } from 'commander';
import { explainedText } from '../../admin/views/explained-text.js';
import { loadConfig } from '../../config/load.js';
import { offlineInput } from '../../control/offline/offline.js';
import { explainedPair } from '../../control/questions/explain.js';
import { explainRecorded } from '../../control/questions/explain-recorded.js';
import { readRecording } from '../../control/recording/read-recording.js';
import { explain, explanationText, Optimizer } from '../../optimizer/index.js';
import { planOption } from '../plan-option.js';
import { ask, offlineConfig, type SourceOptions, withOfflineSource } from '../source.js';
import { UsageError } from '../usage-error.js';

interface ExplainOptions extends SourceOptions {
  readonly frontend: string;
  readonly pool?: string;
  readonly engine: string;
  readonly plan?: string;
  readonly recording?: string;
  readonly json?: boolean;
}

export function registerExplain(program: Command): void {
  withOfflineSource(
    program
      .command('explain')
      .summary('say why a weight is what it is, or was')
      .description(
        'Say in words and milliseconds why the weight of an engine for a frontend is what it is: what a request ' +
          'waits for there, what it costs everybody, and how the other engines compare. For a request of before, give ' +
          'the plan that its response or its line in the access log names.',
      )
      .requiredOption('--frontend <id>', 'frontend')
      .option('--pool <id>', 'pool, or an alias of a model; may be left out where the engine is in one only')
      .requiredOption('--engine <id>', 'engine')
      .option(
        '--plan <plan>',
        'id or number of a plan of before, as long as the control server keeps it',
        planOption,
      )
      .addOption(
        new Option(
          '--recording <file>',
          'look for the plan in what wardrop record or serve --record wrote, and ask nobody',
        ).conflicts('offline'),
      )
      .option('--json', 'print JSON'),
  ).action(async (options: ExplainOptions) => {
    console.log(await explanationFor(options));
  });
}

function explanationFor(options: ExplainOptions): Promise<string> {
  if (options.recording !== undefined) return explainFromRecording(options, options.recording);
  if (options.offline !== true) return explainThere(options);
  if (options.plan !== undefined) throw new UsageError('--plan cannot be asked for with --offline');
  return explainHere(options);
}

async function explainFromRecording(options: ExplainOptions, file: string): Promise<string> {
  const { plan } = options;
  if (plan === undefined) throw new UsageError('--recording needs --plan');
  const optimizer = new Optimizer();
  try {
    const explained = await explainRecorded(optimizer, readRecording(file), { ...options, plan });
    return options.json === true ? JSON.stringify(explained, null, 2) : explainedText(explained).trimEnd();
  } finally {
    await optimizer.close();
  }
}

async function explainThere(options: ExplainOptions): Promise<string> {
  const { frontend, pool, engine, plan, json } = options;
  const query = new URLSearchParams({
    frontend,
    engine,
    ...(pool === undefined ? {} : { pool }),
    ...(plan === undefined ? {} : { plan }),
  });
  const accept = json === true ? 'application/json' : 'text/plain';
  return (await ask(options, `/v1/explain?${query}`, { accept })).trimEnd();
}

async function explainHere(options: ExplainOptions): Promise<string> {
  const input = await offlineInput(loadConfig(offlineConfig(options)));
  const pair = explainedPair(options, input.state.fleet);
  const optimizer = new Optimizer();
  try {
    const explanation = explain(input, await optimizer.solve(input), pair);
    return options.json === true ? JSON.stringify(explanation, null, 2) : explanationText(explanation);
  } finally {
    await optimizer.close();
  }
}
