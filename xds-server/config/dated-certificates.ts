import type { Upstream } from '../fleet/upstream.js';
import { certificatesOf, spanOf } from './certificates.js';
import type { DatedCertificate, TlsSettings } from './config.js';

/**
 * When the files with certificates that passed the checks are valid. Of a chain, its first certificate counts, and of
 * authorities the one that is valid longest: they are often several, the next ones beside those that end.
 */
export function datedCertificates(
  server: TlsSettings | undefined,
  upstreams: ReadonlyMap<string, Upstream>,
): readonly DatedCertificate[] {
  const dated = new Map<string, DatedCertificate>();
  const add = (kind: 'chain' | 'authorities', key: string, pem: string | undefined) => {
    if (pem === undefined || dated.has(`${kind} ${pem}`)) return;
    const spans = certificatesOf(pem).flatMap(readableSpan);
    const span = kind === 'chain' ? spans[0] : spans.sort((a, b) => b.toMs - a.toMs)[0];
    if (span !== undefined) dated.set(`${kind} ${pem}`, { key, ...span });
  };
  add('chain', 'server.tls.cert', server?.cert);
  add('authorities', 'server.tls.clientCa', server?.clientCa);
  add('authorities', 'server.tls.peerCa', server?.peerCa);
  for (const [id, { tls }] of upstreams) {
    add('chain', `tls.certFile of engine ${id}`, tls?.client?.cert);
    add('authorities', `tls.caFile of engine ${id}`, tls?.ca);
  }
  return [...dated.values()];
}

/** Of a bundle, what cannot be read counts for nothing. */
function readableSpan(pem: string) {
  try {
    return spanOf(pem) ?? [];
  } catch {
    return [];
  }
}
