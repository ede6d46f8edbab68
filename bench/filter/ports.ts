import { createServer } from 'node:net';

const FIRST = 23_000;
const END = 24_000;
const SPAN = 26;

/** What the bench listens on, on loopback. */
export interface Ports {
  readonly xds: number;
  readonly sync: number;
  readonly api: number;
  readonly envoyAdmin: number;
  readonly defaults: number;
  readonly none: number;
  readonly maglev: number;
  readonly filter: number;
  readonly c: number;
  readonly bare: number;
  readonly bareBody: number;
  readonly extProc: number;
  readonly extProcBody: number;
  /** An Envoy by itself, its admin, and what it calls in place of a control server. */
  readonly small: number;
  readonly smallAdmin: number;
  readonly smallSync: number;
  /** First ports of four engines each; a fifth is taken by the engines' own business. */
  readonly engines: readonly [number, number];
}

export function portsFrom(base: number): Ports {
  return {
    xds: base,
    sync: base + 1,
    api: base + 2,
    envoyAdmin: base + 3,
    defaults: base + 20,
    none: base + 4,
    maglev: base + 5,
    filter: base + 6,
    c: base + 7,
    bare: base + 21,
    bareBody: base + 22,
    extProc: base + 8,
    extProcBody: base + 9,
    small: base + 23,
    smallAdmin: base + 24,
    smallSync: base + 25,
    engines: [base + 10, base + 15],
  };
}

/** Ports below those that systems give to outgoing connections, so that they stay free until they are listened on. */
export async function freePorts(): Promise<Ports> {
  for (let base = FIRST; base + SPAN <= END; base += SPAN) {
    const free = await Promise.all(Array.from({ length: SPAN }, (_, offset) => isFree(base + offset)));
    if (free.every(Boolean)) return portsFrom(base);
  }
  throw new Error(`no ${SPAN} ports in a row are free between ${FIRST} and ${END}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
