import fc from 'fast-check';
import { expect, it } from 'vitest';
import { noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { encodeUsageReport } from '../../wire/usage-report-writer.js';
import { noRelief } from '../plan/protection/relief.js';
import { UsageLedger } from '../signals/usage/usage-ledger.js';
import { NOTHING_KNOWN, PeerBoard } from './peer-board.js';
import { decodeNews, encodeNews, type Known, type PeerNews } from './peer-news.js';

const NODES = 3;
const SERVERS = 2;

/** A control server with what it has heard of each node, itself or from the other. */
class Server {
  readonly ledger = new UsageLedger();
  readonly board: PeerBoard;
  readonly offered = new Map<string, number>();
  /** How much of the other's news it has. */
  known: Known = NOTHING_KNOWN;
  /** An answer of the other that is on its way, again and again. */
  late: PeerNews | undefined;

  constructor(name: string) {
    this.board = new PeerBoard(name, () => 0);
  }

  hear(nodeId: string, bytes: Uint8Array): void {
    const report = decodeUsageReport(bytes);
    if (!this.ledger.isNews(nodeId, report)) return;
    for (const { offered } of this.ledger.accept(nodeId, report, 0)?.pools ?? []) {
      this.offered.set(nodeId, (this.offered.get(nodeId) ?? 0) + offered);
    }
  }

  take(news: PeerNews): void {
    for (const { nodeId, bytes } of news.reports) this.hear(nodeId, bytes);
  }
}

function newsFor(server: Server, from: Server): PeerNews {
  return decodeNews(
    encodeNews({
      claim: { instance: 'x', term: 1, leads: true, sinceMs: 1 },
      configId: 'c',
      planSequence: null,
      orders: { drains: [], orders: [], actions: [] },
      ...from.board.after(server.known),
    }),
  );
}

const node = fc.nat(NODES - 1);
const server = fc.nat(SERVERS - 1);
const step = fc.oneof(
  fc.record({ kind: fc.constant('count' as const), node, requests: fc.nat(50) }),
  // The VM that calls is another one from now on, as after a trap.
  fc.record({ kind: fc.constant('restart' as const), node }),
  fc.record({ kind: fc.constant('report' as const), node, server }),
  fc.record({ kind: fc.constant('exchange' as const), server, isLost: fc.boolean() }),
  fc.record({ kind: fc.constant('repeat' as const), server }),
);

it('two servers that tell each other of reports count every request once, whichever is called, and whatever is lost, late or told twice', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const servers = Array.from({ length: SERVERS }, (_, index) => new Server(String(index)));
      const nodes = Array.from({ length: NODES }, (_, index) => ({
        id: `n${index}`,
        vms: [{ incarnation: BigInt(index * 1_000 + 1), offered: 0, sequence: 0 }],
      }));
      const report = ({ id, vms }: (typeof nodes)[number], to: Server) => {
        const written: UsageReport = {
          vms: vms.map((vm) => ({
            ...noVmUsage(vm.incarnation, ++vm.sequence),
            pools: [{ ...noPoolUsage(1n), offered: vm.offered }],
          })),
        };
        const bytes = encodeUsageReport(written);
        to.hear(id, bytes);
        to.board.addReport({ kind: 'report', frontendId: 'f', nodeId: id, bytes });
      };
      const exchange = (to: Server, from: Server, isLost = false) => {
        const news = newsFor(to, from);
        to.late = news;
        if (isLost) return;
        to.take(news);
        to.known = news.known;
      };
      const exchangeBoth = () => {
        exchange(servers[0]!, servers[1]!);
        exchange(servers[1]!, servers[0]!);
      };
      // From here on all is counted.
      for (const each of nodes) report(each, servers[0]!);
      exchangeBoth();
      for (const each of steps) {
        if (each.kind === 'count') nodes[each.node]!.vms.at(-1)!.offered += each.requests;
        else if (each.kind === 'restart') {
          const { vms } = nodes[each.node]!;
          vms.push({ incarnation: vms.at(-1)!.incarnation + 1n, offered: 0, sequence: 0 });
        } else if (each.kind === 'report') report(nodes[each.node]!, servers[each.server]!);
        else if (each.kind === 'exchange')
          exchange(servers[each.server]!, servers[1 - each.server]!, each.isLost);
        else if (servers[each.server]!.late !== undefined)
          servers[each.server]!.take(servers[each.server]!.late!);
      }
      for (const each of nodes) report(each, servers[0]!);
      exchangeBoth();
      const truth = nodes.map(({ vms }) => vms.reduce((sum, { offered }) => sum + offered, 0));
      for (const { offered } of servers) {
        expect(nodes.map(({ id }) => offered.get(id) ?? 0)).toEqual(truth);
      }
    }),
  );
});

const drain = { engineId: 'e', address: null, sinceMs: 1, overSeconds: 2, untilMs: 3 };
const saying = {
  claim: { instance: 'a', term: 2, leads: true, sinceMs: 1 },
  configId: 'c',
  planSequence: 7,
  orders: {
    drains: [drain],
    orders: [],
    actions: [{ atMs: 1, action: 'drain' as const, target: 'e', by: 'me' }],
  },
};

it('what is told is as it was, and only what is not known yet', async () => {
  const board = new PeerBoard('a', () => 0);
  const relief = { ...noRelief, limits: new Map([['e', 3]]) };
  const live = { engines: [], relief };
  const pools = { connected: ['n'], given: ['p'], named: ['p', 'q'] };
  board.setState('text');
  board.setLive({ live, configured: ['n'], pools });
  board.addReport({ kind: 'load-report', frontendId: 'f', nodeId: 'n', bytes: new Uint8Array([1, 2]) });
  const news: PeerNews = { ...saying, ...board.after(NOTHING_KNOWN) };
  const read = decodeNews(encodeNews(news));
  expect(read).toMatchObject({ live, pools });
  expect(read).toMatchObject({ ...news, reports: [{ nodeId: 'n', bytes: Buffer.from([1, 2]) }] });
  const later = board.after(read.known);
  expect(later).toEqual({ known: read.known, reports: [] });
  const waiting = board.news(read.known, 60_000, new AbortController().signal);
  board.setLive({ live, configured: ['n', 'm'], pools });
  await waiting;
  expect(board.after(read.known)).toMatchObject({ live, configured: ['n', 'm'], reports: [] });
  expect(board.after({ ...read.known, instance: 'of before' })).toMatchObject({ state: 'text' });
});

it('nonsense is refused with a reason', () => {
  for (const [text, reason] of [
    ['{', /no JSON/],
    ['{"format": 9}', /format 9/],
    ['{"format": 1, "claim": {}}', /wrong at/],
  ] as const) {
    expect(() => decodeNews(text)).toThrow(reason);
  }
});

it('what nobody could show or publish is refused: times beyond all dates, shares above 1', () => {
  const told = new PeerBoard('a', () => 0).after(NOTHING_KNOWN);
  const late = { ...saying.orders, drains: [{ ...drain, untilMs: 1e300 }] };
  expect(() => decodeNews(encodeNews({ ...saying, orders: late, ...told }))).toThrow(
    'is wrong at /orders/drains/0/untilMs: must be <= 8640000000000000',
  );
  const live = { engines: [], relief: { ...noRelief, engines: new Map([['e', 1.5]]) } };
  expect(() => decodeNews(encodeNews({ ...saying, ...told, live }))).toThrow(
    'is wrong at /live/relief/engines/0/1: must be <= 1',
  );
});
