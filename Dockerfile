# Sluice in a container: docker build -t sluice . && docker run -p 8080:8080 -v sluice-data:/data sluice
# The first start prints the first API key and the password of the dashboard. SLUICE_BOOTSTRAP_KEY and SLUICE_ADMIN_PASSWORD
# set them; OPENAI_API_KEY and the like switch channels on.
# A stop takes up to 40 seconds: 5 in which /readyz answers 503 and calls are still served (timeouts.drainDelay), then 30 for open calls
# (timeouts.drain). Docker kills after 10: use docker stop --time 45, stop_grace_period: 45s, or terminationGracePeriodSeconds: 45.
FROM node:24-slim AS page

WORKDIR /app
COPY package.json package-lock.json ./
COPY plugins plugins
RUN npm ci --include=dev --no-audit --no-fund

FROM node:24-slim

WORKDIR /app
ENV NODE_ENV=production \
    SLUICE_HOST=0.0.0.0 \
    SLUICE_DATA=/data

COPY package.json package-lock.json ./
# Channels that sign in to AWS, Azure or Google Cloud without a key need these packages (66 MB). Remove the second command where none does.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force
RUN node -p "Object.entries(require('./package.json').peerDependencies).map((peer) => peer.join('@')).join(' ')" \
  | xargs npm install --no-save --save-prod --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force

COPY core core
COPY plugins plugins
COPY channels channels
COPY gateway.config.ts ./
COPY --from=page /app/plugins/dashboard/dist plugins/dashboard/dist

RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SLUICE_PORT || 8080}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

CMD ["node", "core/cli/sluice.js", "start"]
