/** Sends alerts to a workflow of Microsoft Teams, as an Adaptive Card: https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using. */
import type { DestinationTools, OpenDestination } from './destination.ts';
import { checkStatus, cut, linesOf, linkOf, titleOf, wordOf } from './text.ts';

/** Opens the address of a workflow that posts webhook requests to a channel. */
export function openTeams(url: string, { http, url: base }: DestinationTools): OpenDestination {
  return {
    async send(message, { timeout, signal }) {
      const block = (text: string, rest: object = {}) => ({ type: 'TextBlock', text, wrap: true, ...rest });
      const lines = linesOf(message, (item) => `${wordOf(item)}: ${plain(cut(item.text, 300))}`);
      const [first] = message.items;
      const link = first === undefined ? undefined : linkOf(first, base);
      const content = {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.2',
        body: [
          block(plain(titleOf(message)), { weight: 'Bolder', size: 'Medium' }),
          ...lines.map((line) => block(line)),
        ],
        ...(link === undefined ? {} : { actions: [{ type: 'Action.OpenUrl', title: 'Show', url: link }] }),
      };
      const attachments = [
        { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content },
      ];
      const { status } = await http.ask({
        url,
        timeout,
        signal,
        limit: 64 * 1024,
        json: { type: 'message', attachments },
      });
      checkStatus(status);
    },
  };
}

/** Escapes what Markdown would read. */
function plain(text: string): string {
  return text.replaceAll(/[\\*_[\]()]/g, (character) => `\\${character}`);
}
