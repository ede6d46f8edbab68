import { describe, expect, it } from 'vitest';
import { WardropError } from '../../errors.js';
import type { LoadReport } from '../../fleet/load-report.js';
import { LoadReportSession } from './load-report-session.js';

const node = { id: 'n', cluster: 'f', region: '', metadata: {}, userAgent: 'envoy', userAgentVersion: '' };
const of = (...pools: string[]): LoadReport => pools.map((poolId) => ({ poolId, dropped: 0, engines: [] }));

function sessionOf() {
  const asked: (readonly string[])[] = [];
  const taken: LoadReport[] = [];
  const clusters = { now: ['m'] as readonly string[] };
  const session = new LoadReportSession(
    {
      resolveFrontend: ({ cluster }) =>
        cluster === 'f' ? 'f' : new WardropError('WARDROP_NODE_UNKNOWN', 'whose is it?'),
      clusters: () => clusters.now,
      open: () => (report) => void taken.push(report),
    },
    (names) => void asked.push(names),
  );
  return { session, asked, taken, clusters };
}

describe('a stream of load reports', () => {
  it('is asked about the clusters of all pools, and again only when they change', () => {
    const { session, asked, clusters } = sessionOf();
    session.receive({ node, report: [] });
    session.receive({ report: of('m') });
    expect(asked).toEqual([['m']]);
    clusters.now = ['m', 'n'];
    session.receive({ report: of('m') });
    session.receive({ report: of('m', 'n') });
    expect(asked).toEqual([['m'], ['m', 'n']]);
  });

  it('is also asked when there is no pool yet, so that the client goes on', () => {
    const { session, asked, clusters } = sessionOf();
    clusters.now = [];
    session.receive({ node, report: [] });
    expect(asked).toEqual([[]]);
  });

  it('passes on what is of pools, from the first message on', () => {
    const { session, taken } = sessionOf();
    session.receive({ node, report: of('m', 'wardrop-xds') });
    expect(taken).toEqual([of('m')]);
  });

  it('is refused without a node, and with one of no frontend', () => {
    const refused = (request: Parameters<LoadReportSession['receive']>[0]) => () =>
      sessionOf().session.receive(request);
    expect(refused({ report: of('m') })).toThrowError(/which node/);
    expect(refused({ node: { ...node, cluster: 'x' }, report: [] })).toThrowError(/whose is it/);
  });
});
