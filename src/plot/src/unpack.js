{
  const places = document.querySelectorAll("details > div:empty");
  const tell = (error) => {
    const text = document.createElement("p");
    text.textContent = `The details cannot be shown: ${error}.`;
    document.querySelector("details").before(text);
  };
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(document.getElementById("packed").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const parts = (await new Response(stream).text()).split("\0");
    places.forEach((place, n) => { place.innerHTML = parts[n]; });
  };
  unpack().catch(tell);
}
