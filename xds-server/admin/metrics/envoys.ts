import { now } from '../../steady-clock.js';
import type { ShownServer } from '../shown-server.js';
import { gauge, type Registers } from './gauge.js';

export function registerEnvoys(server: ShownServer, registers: Registers): void {
  gauge(registers, 'wardrop_snapshot_version', 'Newest snapshot of a frontend.', ['frontend'], () =>
    server.config.fleet.frontends.flatMap(({ id }) => {
      const version = server.board.current(id)?.version;
      return version === undefined ? [] : [[{ frontend: id }, version] as const];
    }),
  );
  gauge(registers, 'wardrop_envoys', 'Envoys connected over xDS.', ['frontend'], () => {
    const nodes = server.nodes();
    return server.config.fleet.frontends.map(
      ({ id }) => [{ frontend: id }, nodes.filter((node) => node.frontendId === id).length] as const,
    );
  });
  gauge(
    registers,
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
