import { types } from '../messages.js';
import type { Server } from '../server.js';

/** How the types of the first node are, by their short names. */
export function statuses(server: Server): Record<string, string> {
  const entries = Object.entries(types).flatMap(([name, url]) => {
    const view = server.nodes()[0]?.types[url];
    return view === undefined ? [] : [[name, view.status]];
  });
  return Object.fromEntries(entries);
}
