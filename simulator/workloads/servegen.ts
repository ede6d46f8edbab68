import { readFileSync } from 'node:fs';
import { packageFile } from '../../xds-server/package-file.js';
import type { ConversationSource } from './conversation-source.js';
import { merge, renewals } from './mix.js';

/**
 * Arrivals as those of a service with clients of very different sizes and regularity (ServeGen, arXiv 2505.09999: its
 * DeepSeek-R1 service, 73 clients over a day, the largest with more than a quarter of all requests): each is a stream of its own, with gaps
 * of its own spread. What is asked is that of the source.
 */
export function withServegenClients(source: ConversationSource): ConversationSource {
  const clients = readClients();
  return {
    ...source,
    arrivals: (conversationsPerSecond, random) =>
      merge(clients.map(({ share, cv }) => renewals(1 / (share * conversationsPerSecond), cv, random))),
  };
}

function readClients(): { share: number; cv: number }[] {
  const text = readFileSync(packageFile('simulator', 'data', 'servegen-clients.csv'), 'utf8');
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [, share, cv] = line.split(',').map(Number);
      return { share: share!, cv: cv! };
    });
}
