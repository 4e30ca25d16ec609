/** The help of `sluice doctor agents`. */
export const agentsHelp = `Usage: sluice doctor agents [AGENT...] [--url URL] [--key KEY | --key-env NAME] [--model MODEL]
                            [--path FOLDERS] [--timeout SECONDS] [--json]

Runs each agent that is installed once against the gateway, in a home of its own that is removed afterwards: no settings of yours are
read or written. Prints which of them answer, stream, use tools and list models, and why not. Code 1 when one does not answer.
An agent sends about two requests. The options of the gateway are those of "sluice connect".

AGENT      Only these. Default: all that are found.
--path     Folders in which programs are looked for, as $PATH has them. Default: $PATH.
--timeout  Seconds for each agent. Default: 120.
--json     Prints the table as JSON.`;
