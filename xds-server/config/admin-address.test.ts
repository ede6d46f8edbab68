import { describe, expect, it } from 'vitest';
import { adminAddress } from './admin-address.js';

const addressIn = (text: string) => adminAddress('fleet.yaml', () => text);

describe('the address of the control server', () => {
  it.each([
    ['server: {admin: {listen: 127.0.0.1:7}}', '127.0.0.1:7'],
    ['server: {admin: {listen: "[::1]:7"}, tokenFile: not-there}\nengines: none\nfrontend: x', '[::1]:7'],
    ['engines: []', '127.0.0.1:18002'],
    ['server: {xds: 7}', '127.0.0.1:18002'],
  ])('is read from %s, whatever else is wrong there', (text, address) => {
    expect(addressIn(text)).toBe(address);
  });

  it.each([
    ['server: {admin: {listen: here}}', 'server.admin.listen: "here" is not an IP address'],
    ['server: {admin: {lisen: 127.0.0.1:7}}', 'server.admin.lisen: unknown key'],
    ['server: {amdin: {listen: 127.0.0.1:7}}', 'server.amdin: unknown key'],
    ['srever: {admin: {listen: 127.0.0.1:7}}', 'srever: unknown key'],
    ['server: {admin: {listen: 7}}', 'server.admin.listen: must be a text'],
    ['server: 7', 'server: must be a mapping'],
    ['- server', 'must be a mapping, not a list'],
    ['', 'must be a mapping, not nothing'],
    ['server: {', 'fleet.yaml:1:'],
  ])('is not guessed from %j', (text, message) => {
    expect(() => addressIn(text)).toThrow(message);
  });
});
