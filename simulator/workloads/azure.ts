import { readFileSync } from 'node:fs';
import { packageFile } from '../../xds-server/package-file.js';
import type { Random } from '../random.js';
import { type Arrivals, type ConversationSource, measured } from './conversation-source.js';
import { merge } from './mix.js';

interface TraceRequest {
  readonly atSeconds: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * Single requests as in Azure's traces of 2023: sizes drawn from the trace, every token of the prompt new. With
 * `replay` they also come when the trace's came, gaps and bursts included: more load is further copies of the trace
 * from another beginning, less load a part of its requests; time is never compressed.
 *
 * @param scale tokens of the trace for one of ours
 */
export function azure(
  trace: 'azure-conversation' | 'azure-code',
  { scale, replay }: { readonly scale: number; readonly replay: boolean },
): ConversationSource {
  const requests = read(trace);
  const source = measured({
    conversation(id, startAt, random) {
      const { inputTokens, outputTokens } = requests[random.integer({ min: 0, max: requests.length - 1 })]!;
      return [
        {
          conversationId: id,
          index: 0,
          atSeconds: startAt,
          messageTokens: Math.max(1, Math.round(inputTokens / scale)),
          outputTokens: Math.max(1, Math.round(outputTokens / scale)),
          streamed: true,
          last: true,
        },
      ];
    },
  });
  if (!replay) return source;
  return { ...source, arrivals: (rate, random) => copies(requests, rate, random) };
}

function copies(requests: readonly TraceRequest[], rate: number, random: Random): Arrivals {
  const length = requests.at(-1)!.atSeconds;
  const factor = (rate * length) / requests.length;
  const count = Math.ceil(factor);
  const kept = factor / count;
  return merge(
    Array.from({ length: count }, () => {
      let index = random.integer({ min: 0, max: requests.length - 1 });
      let offset = -requests[index]!.atSeconds;
      return {
        next() {
          for (;;) {
            const at = offset + requests[index]!.atSeconds;
            index++;
            if (index === requests.length) {
              index = 0;
              offset += length;
            }
            if (random.unit() < kept) return at;
          }
        },
      };
    }),
  );
}

function read(trace: string): TraceRequest[] {
  const text = readFileSync(packageFile('simulator', 'data', `${trace}.csv`), 'utf8');
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [atSeconds, inputTokens, outputTokens] = line.split(',').map(Number);
      return { atSeconds: atSeconds!, inputTokens: inputTokens!, outputTokens: outputTokens! };
    });
}
