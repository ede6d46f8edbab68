import type { Command } from 'commander';
import { loadConfig } from '../../config/load.js';
import { offlineInput } from '../../control/offline/offline.js';
import { explainedPair } from '../../control/questions/explain.js';
import { explain, explanationText, Optimizer } from '../../optimizer/index.js';
import { ask, offlineConfig, type SourceOptions, withOfflineSource } from '../source.js';

interface ExplainOptions extends SourceOptions {
  readonly frontend: string;
  readonly pool?: string;
  readonly engine: string;
  readonly json?: boolean;
}

export function registerExplain(program: Command): void {
  withOfflineSource(
    program
      .command('explain')
      .summary('say why a weight is what it is')
      .description(
        'Say in words and milliseconds why the weight of an engine for a frontend is what it is: what a request ' +
          'waits for there, what it costs everybody, and how the other engines compare.',
      )
      .requiredOption('--frontend <id>', 'frontend')
      .option('--pool <id>', 'pool; may be left out where the engine is in one only')
      .requiredOption('--engine <id>', 'engine')
      .option('--json', 'print JSON'),
  ).action(async (options: ExplainOptions) => {
    console.log(options.offline === true ? await explainHere(options) : await explainThere(options));
  });
}

async function explainThere(options: ExplainOptions): Promise<string> {
  const { frontend, pool, engine, json } = options;
  const query = new URLSearchParams({ frontend, engine, ...(pool === undefined ? {} : { pool }) });
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
