// A process of clients: what they do costs the server's process nothing.
import { StreamClient } from './stream-client.js';

/** What the parent asks for. */
export type ClientOrder =
  | {
      readonly kind: 'open';
      readonly address: string;
      readonly streams: number;
      readonly frontends: number;
      readonly names: readonly string[];
      readonly raw: boolean;
      readonly prefix: string;
    }
  /** Half of these connections are closed and opened again every `periodMs`. */
  | { readonly kind: 'churn'; readonly clients: number; readonly periodMs: number };

/** What it tells: every stream has one more response; `atMs` of each, monotonic. */
export interface ClientReport {
  readonly kind: 'response' | 'raw';
  readonly atMs: readonly number[];
}

let wanted = 0;
let order: Extract<ClientOrder, { kind: 'open' }> | undefined;
const arrivals: Record<ClientReport['kind'], number[]> = { response: [], raw: [] };
let extra = 0;

function arrived(kind: ClientReport['kind'], atMs: number): void {
  const list = arrivals[kind];
  list.push(atMs);
  if (list.length < wanted) return;
  process.send!({ kind, atMs: [...list] } satisfies ClientReport);
  list.length = 0;
}

function connectOne(counted: boolean): StreamClient {
  const index = extra++;
  const { address, names, frontends, raw, prefix } = order!;
  return new StreamClient({
    address,
    names,
    nodeId: `${prefix}-${index}`,
    frontendId: `frontend-${index % frontends}`,
    onResponse: (atMs) => counted && arrived('response', atMs),
    ...(raw && counted && { onRaw: (atMs: number) => arrived('raw', atMs) }),
  });
}

process.on('message', (message: ClientOrder) => {
  if (message.kind === 'open') {
    order = message;
    wanted = message.streams;
    for (let i = 0; i < message.streams; i++) connectOne(true);
  } else {
    const churned = Array.from({ length: message.clients }, () => connectOne(false));
    setInterval(() => {
      for (let i = 0; i < churned.length; i += 2) {
        churned[i]!.close();
        churned[i] = connectOne(false);
      }
    }, message.periodMs);
  }
});
process.on('disconnect', () => process.exit());
