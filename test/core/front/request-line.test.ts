import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { headerProblem, requestLineProblem } from '../../../core/front/request-line.ts';

const lineOf = (url: string, httpVersion = '1.1') =>
  requestLineProblem({
    url,
    httpVersion,
    httpVersionMajor: Number(httpVersion.split('.')[0]),
  } as IncomingMessage);

describe('the first line of a request', () => {
  test.each(['/', '/v1/x?a=b', '*', 'http://host/v1', 'HTTPS://host', '//x'])('may name %s', (url) => {
    expect(lineOf(url)).toBeUndefined();
  });

  test.each([
    '',
    'x',
    'v1/x',
    '/v1#part',
    'http://host/#part',
    'http://',
    'ftp://host/',
    'xhttp://host',
    '**',
    '*x',
  ])('may not name %j', (url) => {
    expect(lineOf(url)).toMatchObject({ status: 400, code: 'invalid_request' });
  });

  test.each(['0.9', '2.0', '3.0'])('is refused with 505 in HTTP/%s', (version) => {
    expect(lineOf('/', version)).toMatchObject({ status: 505 });
    expect(lineOf('/', version)?.message).toContain(`HTTP/${version}`);
    expect(lineOf('/', '1.0')).toBeUndefined();
  });
});

test('headers are counted with the URL and two bytes for each name and value, and may be as long as the limit', () => {
  const request = { url: '/12345678', rawHeaders: ['host', 'x', 'a', 'bc'] } as IncomingMessage;
  const length = 9 + 6 + 3 + 3 + 4;
  expect(headerProblem(request, length)).toBeUndefined();
  expect(headerProblem(request, length - 1)).toMatchObject({ status: 431, code: 'invalid_request' });
});
