/** Settings of fetches from URLs that clients give. */
import { z } from 'zod';
import { isAddressRange } from '../model/addresses.ts';

/** Limits of fetches. Only http and https are fetched, and only from ports 80, 443 and those from 1024 on. */
export const fetchSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('false: refuses content by URL where a channel needs its bytes'),
    size: z
      .int()
      .min(1024)
      .default(20 * 1024 * 1024)
      .describe('maximum size of one file, in bytes'),
    total: z
      .int()
      .min(1024)
      .default(50 * 1024 * 1024)
      .describe('maximum size of all files of one call together, in bytes'),
    timeout: z
      .int()
      .min(100)
      .default(15_000)
      .describe(
        'maximum time of one fetch, in milliseconds. Before it, the fetch may wait as long for its turn',
      ),
    redirects: z.int().min(0).max(10).default(3).describe('maximum number of redirects of one fetch'),
    most: z.int().min(1).default(20).describe('maximum number of fetches of one call'),
    concurrency: z
      .int()
      .min(1)
      .default(64)
      .describe('maximum number of fetches that run at the same time, of all calls together'),
    allow: z
      .array(z.string().refine(isAddressRange, 'must be an IP address or a CIDR range, such as 10.0.0.0/8'))
      .default([])
      .describe('private IP addresses and CIDR ranges that may be fetched from. All others are refused'),
  })
  .prefault({});

/** Checked settings of fetches. */
export type FetchSettings = z.output<typeof fetchSchema>;
