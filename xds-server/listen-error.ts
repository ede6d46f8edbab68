import { WardropError } from './errors.js';

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'something else listens there',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this user may not listen there',
};

/** Why a server cannot listen; gRPC tells the system's error only in its message. */
export function listenError(what: string, listen: string, error: Error): WardropError {
  const name = Object.keys(REASONS).find((each) => error.message.includes(each));
  const code = name === 'EADDRINUSE' ? 'WARDROP_PORT_IN_USE' : 'WARDROP_LISTEN_FAILED';
  const reason = name === undefined ? error.message : `${REASONS[name]} (${name})`;
  return new WardropError(code, `cannot serve ${what} on ${listen}: ${reason}`, { cause: error });
}
