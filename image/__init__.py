"""The container image, as far as it can be known without a container engine: its Dockerfile is read and its lines are
played in a folder, so that its SBOM, its licences and its tests are about what these very lines install."""
