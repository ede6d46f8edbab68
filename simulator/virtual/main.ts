import { Command } from 'commander';
import { engineKinds } from '../engine/parameters.js';
import { exampleConversations } from '../load/conversations.js';
import { csv, sweep } from './sweep.js';

const program = new Command('benchmark')
  .description('Benchmark a simulated engine in virtual time and print the table that `wardrop fit` reads.')
  .argument('<kind>', `one of ${Object.keys(engineKinds).join(', ')}`)
  .action((kind: string) => {
    if (!engineKinds[kind]) program.error(`there is no engine kind ${kind}`);
    process.stdout.write(csv(sweep(kind, exampleConversations)));
  });

program.parse();
