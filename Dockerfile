# The image of masters, agents and frameworks: a release build without a base image. Build it with:
#
#     cargo build --release
#     contrib/docker/root target/image target/release/tepui
#     docker build -t tepui -f Dockerfile target/image
FROM scratch
COPY root /
COPY --chown=10001:10001 state /var/lib/tepui
ENV PATH=/usr/bin:/bin HOME=/var/lib/tepui
# Agents run tasks as several users and need root. The other programs do not.
USER tepui
WORKDIR /var/lib/tepui
VOLUME /var/lib/tepui
EXPOSE 5050 5051
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tepui"]
CMD ["--help"]
