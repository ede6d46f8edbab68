import { WardropError } from '../errors.js';
import { ownTarget, targetText } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';

/** Under the sync address: what only the admin API of the server that makes the plans can answer. */
export const ADMIN_QUESTION_PATH = '/v1/peer/admin';
/** Marks a question that came from a peer, which is not passed on again. */
export const PASSED_ON_HEADER = 'x-wardrop-passed-on';
/** Nothing but reasons is told to peers in this way. */
const PATHS = /^\/v1\/(explain|changes)(\?[^#]*)?$/;

export interface AdminQuestion {
  /** With its query. */
  readonly path: string;
  /** Of the `accept` header. */
  readonly accept: string;
}

export interface AdminAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/**
 * Asks our own admin API what a peer wants to know.
 *
 * @throws {WardropError} WARDROP_PEER_INVALID for anything but reasons
 */
export async function answerFromAdmin(listen: Address, text: string): Promise<AdminAnswer> {
  const { path, accept } = read(text);
  const response = await fetch(`http://${targetText(ownTarget(listen))}${path}`, {
    headers: { accept, [PASSED_ON_HEADER]: '1' },
  });
  const type = response.headers.get('content-type') ?? 'text/plain';
  return { status: response.status, type, body: await response.text() };
}

function read(text: string): AdminQuestion {
  let question: Partial<AdminQuestion> | null = null;
  try {
    question = JSON.parse(text) as Partial<AdminQuestion> | null;
  } catch {
    // It is told below what would be right.
  }
  const { path, accept } = question ?? {};
  if (typeof path === 'string' && PATHS.test(path) && typeof accept === 'string') return { path, accept };
  throw new WardropError('WARDROP_PEER_INVALID', 'peers may ask for /v1/explain and /v1/changes only');
}
