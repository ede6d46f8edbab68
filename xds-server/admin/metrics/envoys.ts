import { now } from '../../steady-clock.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, gauge } from './family.js';

export function registerEnvoys(server: ShownServer, families: Family[]): void {
  gauge(families, 'wardrop_snapshot_version', 'Newest snapshot of a frontend.', ['frontend'], () =>
    server.config.fleet.frontends.flatMap(({ id }) => {
      const version = server.board.current(id)?.version;
      return version === undefined ? [] : [[{ frontend: id }, version] as const];
    }),
  );
  gauge(families, 'wardrop_envoys', 'Envoys connected over xDS.', ['frontend'], () => {
    const nodes = server.nodes();
    return server.config.fleet.frontends.map(
      ({ id }) => [{ frontend: id }, nodes.filter((node) => node.frontendId === id).length] as const,
    );
  });
  gauge(
    families,
    'wardrop_envoys_behind',
    'Envoys that called lately and do not hold the newest snapshot.',
    ['frontend'],
    () =>
      server.config.fleet.frontends.map(({ id }) => {
        const version = server.board.current(id)?.version;
        const since = now() - 60_000;
        const behind = server.board
          .holders()
          .filter((holder) => holder.frontendId === id && holder.atMs > since && holder.version !== version);
        return [{ frontend: id }, behind.length] as const;
      }),
  );
}
