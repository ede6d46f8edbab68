import { SotwClient } from '../clients.js';
import type { Server } from '../server.js';

class EverythingClient extends SotwClient {
  readonly #last = new Map<string, Awaited<ReturnType<SotwClient['expect']>>>();

  override async expect(type: Parameters<SotwClient['expect']>[0]) {
    const received = await super.expect(type);
    this.#last.set(type, received);
    return received;
  }

  lastOf(type: string) {
    return this.#last.get(type)!;
  }
}

/** A client that has accepted all of this state, as Envoy does: all clusters and listeners, the rest by name. */
export async function everything(
  server: Server,
  state: Parameters<Server['publish']>[0],
): Promise<EverythingClient> {
  server.publish(state);
  const client = new EverythingClient(server);
  await client.subscribe('cds');
  if (state.eds) await client.subscribe('eds', Object.keys(state.eds));
  await client.subscribe('lds');
  if (state.rds) await client.subscribe('rds', Object.keys(state.rds));
  await client.silence();
  return client;
}
