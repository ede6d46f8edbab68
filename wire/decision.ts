import { DECISION_HEADER } from './names.js';

/** What a response tells of the filter's decision; nothing when it has no such header. */
export interface Decision {
  readonly reason?: string;
  readonly engine?: string;
  readonly plan?: string;
  readonly mode?: string;
}

const ITEM = /^[a-z][a-z-]*(?:; [a-z]+=(?:[a-z][a-z-]*|"[^"\\]*"))*$/;
const PARAMETER = /; ([a-z]+)=(?:"([^"]*)"|([a-z-]+))/g;

/** Reads `DECISION_HEADER` as the filter writes it: of the grammar of structured fields no more than that. */
export function decisionOf(headers: Readonly<Record<string, unknown>>): Decision {
  const value = headers[DECISION_HEADER];
  if (typeof value !== 'string' || !ITEM.test(value)) return {};
  const parameters = [...value.matchAll(PARAMETER)].map(([, name, text, token]) => [name, text ?? token]);
  return { reason: value.split(';', 1)[0], ...Object.fromEntries(parameters) };
}
