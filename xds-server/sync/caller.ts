import type { IncomingHttpHeaders } from 'node:http';
import {
  SYNC_DISPLACED_HEADER,
  SYNC_FRONTEND_HEADER,
  SYNC_NODE_HEADER,
  SYNC_SNAPSHOT_HEADER,
} from '../../wire/names.js';
import { WardropError } from '../errors.js';

/** The filter of an Envoy that calls. */
export interface Caller {
  readonly nodeId: string;
  readonly frontendId: string;
  /** Of the snapshot that it holds; 0 for none. */
  readonly version: number;
  /** Up to where it knows the keys that others have displaced; undefined when it does not want to. */
  readonly knowsDisplaced: number | undefined;
}

/** Whether an Envoy can say in a header that this is its name. */
export function isNodeId(text: string): boolean {
  return /^[\x21-\x7e]{1,256}$/.test(text);
}

/** Who calls, by its headers; throws WARDROP_REPORT_INVALID or WARDROP_NODE_UNKNOWN for nobody. */
export function callerOf(headers: IncomingHttpHeaders, isFrontend: (id: string) => boolean): Caller {
  const nodeId = headers[SYNC_NODE_HEADER];
  if (typeof nodeId !== 'string' || !isNodeId(nodeId)) {
    throw new WardropError('WARDROP_REPORT_INVALID', `header ${SYNC_NODE_HEADER} must name the Envoy`);
  }
  const frontendId = headers[SYNC_FRONTEND_HEADER];
  if (typeof frontendId !== 'string' || !isFrontend(frontendId)) {
    throw new WardropError(
      'WARDROP_NODE_UNKNOWN',
      `header ${SYNC_FRONTEND_HEADER} of node ${nodeId} names no frontend: ${JSON.stringify(frontendId ?? '')}`,
    );
  }
  const version = wholeNumber(headers, SYNC_SNAPSHOT_HEADER) ?? 0;
  return { nodeId, frontendId, version, knowsDisplaced: wholeNumber(headers, SYNC_DISPLACED_HEADER) };
}

function wholeNumber(headers: IncomingHttpHeaders, name: string): number | undefined {
  const text = headers[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new WardropError('WARDROP_REPORT_INVALID', `header ${name} must be a whole number`);
}
