import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A way to a server that takes so long in each direction, for a connection as for what is sent on it. */
export class SlowRoad {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string, oneWayMs: number) {
    const [host, port] = target.split(':');
    this.#server = createServer((near) => {
      const far = connect(Number(port), host);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from);
        from.on('data', (piece) => setTimeout(() => to.writable && to.write(piece), oneWayMs));
        from.on('close', () => setTimeout(() => to.destroy(), oneWayMs));
        from.on('error', () => from.destroy());
      }
    });
  }

  static async open(target: string, roundTripMs: number): Promise<SlowRoad> {
    const road = new SlowRoad(target, roundTripMs / 2);
    await new Promise<void>((resolve) => road.#server.listen(0, '127.0.0.1', resolve));
    return road;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
