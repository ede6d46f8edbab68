import { Command, Option } from 'commander';
import { engineKinds } from '../engine/parameters.js';
import { exampleConversations } from '../load/conversations.js';
import { longPrompts } from '../workloads/mooncake.js';
import { csv, sweep } from './sweep.js';

const shapes = { example: exampleConversations, long: longPrompts };

const program = new Command('benchmark')
  .description('Benchmark a simulated engine in virtual time and print the table that `wardrop fit` reads.')
  .argument('<kind>', `one of ${Object.keys(engineKinds).join(', ')}`)
  .addOption(
    new Option('--requests <shape>', 'what requests are like')
      .choices(Object.keys(shapes))
      .default('example'),
  )
  .action((kind: string, { requests }: { requests: keyof typeof shapes }) => {
    if (!engineKinds[kind]) program.error(`there is no engine kind ${kind}`);
    process.stdout.write(csv(sweep(kind, shapes[requests])));
  });

program.parse();
