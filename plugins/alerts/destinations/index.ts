/** Opens destinations by their type. */
import type { Destination } from '../options.ts';
import type { DestinationTools, OpenDestination } from './destination.ts';
import { openDiscord } from './discord.ts';
import { openEmail } from './email.ts';
import { openPagerDuty } from './pagerduty.ts';
import { openSlack } from './slack.ts';
import { openTeams } from './teams.ts';
import { openWebhook } from './webhook.ts';

/** Opens a destination. Rejects with a sentence where a package is missing. */
export async function openDestination(one: Destination, tools: DestinationTools): Promise<OpenDestination> {
  switch (one.type) {
    case 'webhook':
      return openWebhook(one, tools);
    case 'slack':
      return openSlack(one.url, tools);
    case 'discord':
      return openDiscord(one.url, tools);
    case 'teams':
      return openTeams(one.url, tools);
    case 'pagerduty':
      return openPagerDuty(one, tools);
    case 'email':
      return openEmail(one, tools);
  }
}
