// A button that draws an SVG on a canvas, at twice its size, and saves it as PNG.
export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".gw");
  root.replaceChildren();
  const button = document.createElement("button");
  button.textContent = "PNG";
  button.onclick = async () => {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(data.svg);
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    link.download = data.name;
    link.href = canvas.toDataURL("image/png");
    link.click();
  };
  root.append(button);
  return () => root.replaceChildren();
}
