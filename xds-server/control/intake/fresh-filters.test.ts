import { describe, expect, it } from 'vitest';
import type { Holder } from '../../sync/snapshot-board.js';
import { EXTENSION_TYPE, type NodeView } from '../../xds/index.js';
import { hasFreshFilter } from './fresh-filters.js';

const GIVEN_MS = 100_000;
const NEWEST = 7;

const node: NodeView = {
  nodeId: 'n',
  frontendId: 'f',
  protocol: 'delta',
  userAgent: 'envoy',
  userAgentVersion: '1.40.0',
  connectedAtMs: GIVEN_MS,
  shortcomings: [],
  types: {
    [EXTENSION_TYPE]: {
      status: 'synced',
      subscribed: ['wardrop-listener'],
      sent: { version: '1', atMs: GIVEN_MS },
      acknowledged: null,
      unansweredSinceMs: null,
      rejection: null,
      rejections: 0,
    },
  },
};

function isFresh(
  holder: Partial<Holder> | undefined,
  { nodes = [node], newest = NEWEST, afterMs = 1_000 } = {},
) {
  const holders: Holder[] =
    holder === undefined
      ? []
      : [{ nodeId: 'n', frontendId: 'f', version: NEWEST, atMs: GIVEN_MS + 1, ...holder }];
  const board = {
    holders: () => holders,
    current: () => (newest === 0 ? undefined : { version: newest, bytes: new Uint8Array() }),
  };
  return hasFreshFilter(nodes, board, GIVEN_MS + afterMs);
}

describe('a filter that was just given', () => {
  it('is fresh until its Envoy says that it holds the newest snapshot', () => {
    expect(isFresh(undefined)).toBe(true);
    expect(isFresh({ version: 0 })).toBe(true);
    expect(isFresh({})).toBe(false);
  });

  it('is not known by what the filter before it held, or filters of other Envoys', () => {
    expect(isFresh({ version: NEWEST - 1 })).toBe(true);
    expect(isFresh({ atMs: GIVEN_MS - 1 })).toBe(true);
    expect(isFresh({ nodeId: 'other' })).toBe(true);
    expect(isFresh({ frontendId: 'other' })).toBe(true);
  });

  it('is not waited for when it has had its time, when there is nothing for it, or when none was given', () => {
    expect(isFresh(undefined, { afterMs: 10_001 })).toBe(false);
    expect(isFresh(undefined, { newest: 0 })).toBe(false);
    expect(isFresh(undefined, { nodes: [{ ...node, types: {} }] })).toBe(false);
    expect(isFresh(undefined, { nodes: [] })).toBe(false);
  });
});
