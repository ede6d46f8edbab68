import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether an `authorization` header carries the token; takes the same time for every wrong one. */
export function isAuthentic(header: string | undefined, token: string): boolean {
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
