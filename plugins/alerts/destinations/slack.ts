/** Sends alerts to an incoming webhook of Slack, as blocks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks. */
import type { Item } from '../alert.ts';
import type { DestinationTools, OpenDestination } from './destination.ts';
import { checkStatus, cut, linesOf, linkOf, titleOf, wordOf } from './text.ts';

/** Maximum number of characters of a section, by Block Kit. */
const maxSection = 3_000;

/** Opens an incoming webhook. */
export function openSlack(url: string, { http, url: base }: DestinationTools): OpenDestination {
  const write = (item: Item): string => {
    const link = linkOf(item, base);
    const more = link === undefined ? '' : ` <${escaped(link)}|Show>`;
    return `*${wordOf(item)}* ${escaped(cut(item.text, 400))}${more}`;
  };
  return {
    async send(message, { timeout, signal }) {
      const sections: string[] = [];
      for (const line of linesOf(message, write)) {
        const last = sections.at(-1);
        if (last !== undefined && last.length + line.length < maxSection)
          sections[sections.length - 1] = `${last}\n${line}`;
        else sections.push(cut(line, maxSection));
      }
      const text = escaped(titleOf(message));
      const blocks = sections.map((section) => ({
        type: 'section',
        text: { type: 'mrkdwn', text: section },
      }));
      const { status } = await http.ask({ url, json: { text, blocks }, timeout, limit: 64 * 1024, signal });
      checkStatus(status);
    },
  };
}

/** Escapes the three characters by which mentions and links begin. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
