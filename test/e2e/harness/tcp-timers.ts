import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

type Timer = 'none' | 'keepalive' | 'other';

/** What Linux waits for on each open connection of a process to these ports. */
export function tcpTimers(pid: number, ports: readonly number[]): Timer[] {
  const sockets = socketsOf(pid);
  const [, ...lines] = readFileSync('/proc/net/tcp', 'utf8').trimEnd().split('\n');
  return lines.flatMap((line) => {
    const [, , remote, state, , timer, , , , inode] = line.trim().split(/\s+/);
    const port = Number.parseInt(remote!.split(':')[1]!, 16);
    if (state !== ESTABLISHED || !ports.includes(port) || !sockets.has(inode!)) return [];
    return [timers[timer!.slice(0, 2)] ?? 'other'];
  });
}

const ESTABLISHED = '01';
/** By the numbers of proc_net_tcp(5). */
const timers: Readonly<Record<string, Timer>> = { '00': 'none', '02': 'keepalive' };

/** Inodes of the sockets that a process holds. */
function socketsOf(pid: number): ReadonlySet<string> {
  const folder = `/proc/${pid}/fd`;
  const inodes = readdirSync(folder).map((file) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${file}`))?.[1];
    } catch {
      // Closed meanwhile.
      return undefined;
    }
  });
  return new Set(inodes.filter((inode) => inode !== undefined));
}
