import { logMessage } from './host';
import { begin, lengthFrom, put, Text } from './text';

/** Logs a text that has been composed since `begin`; Envoy puts the plugin's name in front. */
export function logFrom(level: usize, start: usize): void {
  logMessage(level, start, lengthFrom(start));
}

export function log(level: usize, message: Text): void {
  const start = begin();
  put(message);
  logFrom(level, start);
}
